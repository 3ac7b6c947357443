"""JSON files with a version: msgspec decodes and validates them; messages name field and value.

What a file holds is stated once: by the fields of the frozen dataclasses that it is read into, and
the types in :mod:`spmilp.units` that bound their numbers.
"""

import dataclasses
import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from functools import cache
from operator import attrgetter
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from spmilp.errors import FileError
from spmilp.units import LARGEST

LARGEST_DENOMINATOR = 1000
"""Rates with larger denominators would blow up the integers that solvers scale them to."""

MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Byte order marks, which JSON in UTF-8 may not begin with."""

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
_RATE = re.compile(r"\d{1,15}(/0*[1-9]\d{0,14}|\.\d{1,15})?")
_PLACE = re.compile(r"(?s)(.*) - at `\$(.*)`")


K = TypeVar("K", bound=Struct)


class _Header(Struct):
    """Fields of every file, whatever else it holds."""

    format: str
    format_version: str


@contextmanager
def collector_paused() -> Iterator[None]:
    """Do without the garbage collector while tables are built.

    Rows make no cycles, and looking for some among a million rows, again and again, takes longer
    than making them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def ratio_from(value: object) -> Fraction:
    """Return a rate that may be zero as an exact fraction: 8, 23.5 or "47/2".

    Raises
    ------
    ValueError
        If the value is no number, negative, or not of a denominator that solvers can scale.
    """
    written = repr(value) if isinstance(value, int | float) else value
    if not isinstance(written, str) or isinstance(value, bool) or not _RATE.fullmatch(written):
        raise ValueError('expected a positive number such as 8, 23.5 or "47/2"')
    ratio = Fraction(written)
    if ratio > LARGEST:
        raise ValueError(f"expected a number of at most {LARGEST}")
    if ratio.denominator > LARGEST_DENOMINATOR:
        raise ValueError(
            f"expected a fraction whose denominator is at most {LARGEST_DENOMINATOR}, "
            f"{ratio.denominator} is too fine"
        )
    return ratio


def near_matches(name: str, known: Sequence[str]) -> str:
    """Return ``"; did you mean a or b?"``, or nothing when no known name is near."""
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def read_document(path: object, data: bytes, kind: type[K], name: str, version: str) -> K:
    """Return the content of a file of the same major version, validated.

    Fields that are not of the format are left to :func:`refuse_odd_fields`.

    Parameters
    ----------
    path
        Of the file, for messages.
    name, version
        The format that is expected, and the version ``major.minor`` that this code writes.

    Raises
    ------
    FileError
        If the file is not of the format; the message names file, field, value and what is expected.
    """
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            raise FileError(
                f"{path}: no {name} file: it begins with a byte order mark of {encoding}; save it "
                "as UTF-8 without one"
            )
    try:
        header = msgspec.json.decode(data, type=_Header)
    except (ValueError, RecursionError) as error:
        said = what_is_wrong(error, _Header, data)
        raise FileError(f"{path}: no {name} file: {said}") from error
    if header.format != name:
        raise FileError(f"{path}: format: expected {name!r}, got {shown(header.format)}")
    major, known = (
        version_numbers(path, header.format_version)[0],
        version_numbers(path, version)[0],
    )
    if major != known:
        raise FileError(
            f"{path}: format_version: {header.format_version} cannot be read; expected {known}.x"
        )
    try:
        return decoded(data, kind)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error


def version_numbers(path: object, version: str) -> tuple[int, int]:
    """Return the two numbers of a version."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise FileError(f"{path}: format_version: expected major.minor, got {shown(version)}")
    return int(found[1]), int(found[2])


def decoded(data: bytes, kind: type[K]) -> K:
    """Return JSON as what it describes.

    Raises
    ------
    ValueError
        If it is no JSON or describes something else; the message names field and value.
    """
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_decoded)
    except ValueError as error:
        raise ValueError(what_is_wrong(error, kind, data)) from error


def refuse_odd_fields(
    path: object,
    data: bytes,
    kind: type[Struct],
    *,
    tolerant: bool,
    also: Mapping[type, str] = MappingProxyType({}),
) -> Any:
    """Refuse an object that has a field twice, or one that is not of its format.

    Of a field that stands twice readers differ in which one they take.

    Parameters
    ----------
    data
        JSON that has been read before.
    tolerant
        Ignore what is not of the format.
    also
        By class, a field that its objects may have besides.

    Returns
    -------
    dict
        The content of the file.

    Raises
    ------
    FileError
        If there is such an object; the message names the field.
    """

    def once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(fields)
        if len(found) < len(fields):
            names = [name for name, _ in fields]
            twice = next(name for name in names if names.count(name) > 1)
            where = f" of index {found['index']}" if isinstance(found.get("index"), int) else ""
            raise FileError(f"{path}: an object{where} has the field {shown(twice)} twice")
        return found

    content = msgspec.json.decode(data)
    if msgspec.json.encode(content) != msgspec.json.format(data, indent=-1):
        # A field may stand twice, or only numbers or texts be written in another way.
        content = json.loads(data, object_pairs_hook=once)
    unknown = None if tolerant else next(_unknown(content, kind, (), also), None)
    if unknown is not None:
        *place, name = unknown
        known = sorted(_fields(_kind_at(kind, place)))
        hint = near_matches(name, known) or f"; known here: {', '.join(known)}"
        raise FileError(f"{path}: {shown('.'.join(unknown))[1:-1]}: unknown field{hint}")
    return content


def plain(value: Any, silent: Sequence[object] = (None, ())) -> dict[str, Any]:
    """Return the fields of an object, but for those that hold one of the ``silent`` values."""
    names = _names(value.__class__)
    pairs = zip(names, attrgetter(*names)(value), strict=True)
    return {name: inside for name, inside in pairs if inside not in silent}


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields that say what an object is."""
    return tuple(one.name for one in dataclasses.fields(kind) if one.compare)


def encoded(document: Mapping[str, Any]) -> bytes:
    """Return a file: one line for each plain field and each row of a table, in ASCII.

    Tables are lists of mappings. Equal content gives equal bytes, on every machine.
    """
    return _expanded(document, 0) + b"\n"


def what_is_wrong(error: Exception, kind: type[Struct], content: object) -> str:
    """Return the path of a field, what is expected there, and what is there.

    Parameters
    ----------
    kind
        What the content describes: in the place of an unknown field its fields are named.
    content
        The bytes of a file, or what was to be converted.
    """
    if not isinstance(error, msgspec.ValidationError):
        return str(error)
    found = _PLACE.fullmatch(str(error))
    message, place = (found[1], found[2]) if found else (str(error), "")
    steps = re.findall(r"\w+", place)
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing:
        return f"{'.'.join((*steps, missing[1]))}: is missing"
    expected = _kind_at(kind, steps)
    if dataclasses.is_dataclass(expected) and not message.startswith("Expected"):
        return message  # of the object itself, which it names
    message = message.replace("`", "").replace("Expected", "expected", 1)
    if isinstance(expected, type) and issubclass(expected, Enum):
        message = f"expected one of {', '.join(str(one.value) for one in expected)}"
    message = re.sub(r"(expected .*), got \w+", r"\1", message)
    return f"{'.'.join(steps) or 'the file'}: {message}{_got(content, steps)}"


def shown(value: object) -> str:
    """Return a value of a file as it is shown in messages: in ASCII, and not for long."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _decoded(kind: type, value: object) -> object:
    """Read what JSON has no type for."""
    if kind is Fraction:
        return ratio_from(value)
    raise ValueError("is no part of a file")


def _encoded(value: object) -> str:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    raise NotImplementedError(type(value))


_ENCODER = msgspec.json.Encoder(enc_hook=_encoded)


def _expanded(value: object, depth: int) -> bytes:
    """Write objects of the first two levels field by field, and tables row by row."""
    pad, end = b"  " * (depth + 1), b"  " * depth
    if isinstance(value, Mapping) and depth < 2 and value:
        fields = (
            b'%s"%s": %s' % (pad, name.encode(), _expanded(inside, depth + 1))
            for name, inside in value.items()
        )
        return b"{\n" + b",\n".join(fields) + b"\n" + end + b"}"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        rows = _ENCODER.encode_lines(value).splitlines()
        return b"[\n" + b",\n".join(pad + _line(row) for row in rows) + b"\n" + end + b"]"
    return _line(_ENCODER.encode(value))


def _line(text: bytes) -> bytes:
    """Return JSON with spaces and in ASCII, as :func:`json.dumps` writes it."""
    if text.isascii() and b"\x7f" not in text:
        return msgspec.json.format(text, indent=0)
    return json.dumps(json.loads(text)).encode()


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a part of a file, and their types; nothing for anything else."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {name: hints[name] for name in _names(kind)}  # type: ignore[arg-type]
    return get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, Struct) else {}


@cache
def _inside(kind: Any, step: str | int) -> Any:
    """Return the type of a field or an element, ``None`` where there is none."""
    if _fields(kind):
        found = _fields(kind).get(str(step))
    else:
        parts = get_args(kind) if get_origin(kind) is tuple else (None, ...)
        number = 0 if parts[-1] is ... else int(step)
        found = parts[number] if number < len(parts) else None  # an element
    if get_origin(found) in (Union, UnionType):
        found = next(one for one in get_args(found) if one is not type(None))
    return found


def _kind_at(kind: Any, steps: Iterable[str]) -> Any:
    for step in steps:
        kind = _inside(kind, step)
    return kind


def _unknown(
    content: Any, kind: Any, place: tuple[str, ...], also: Mapping[type, str]
) -> Iterator[tuple[str, ...]]:
    """Yield the places of fields that their type does not have."""
    if isinstance(content, list):
        for number, value in enumerate(content):
            of = _inside(kind, number)
            if (
                not _with_fields(of)
                and isinstance(value, dict)
                and value.keys() <= _fields(of).keys()
            ):
                continue  # most rows of large tables
            yield from _unknown(value, of, (*place, str(number)), also)
    elif isinstance(content, dict):
        known = _fields(kind)
        if not content.keys() <= known.keys():
            yield from ((*place, n) for n in content if n not in known and n != also.get(kind))
        for name in _with_fields(kind):
            if name in content:
                yield from _unknown(content[name], _inside(kind, name), (*place, name), also)


@cache
def _with_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a part of a file that have fields themselves."""
    inside = {name: _inside(kind, name) for name in _fields(kind)}
    return tuple(name for name, of in inside.items() if _fields(of) or _fields(_inside(of, 0)))


def _got(content: Any, steps: Iterable[str]) -> str:
    """Return the value at a place, for a message; nothing where it cannot be found."""
    try:
        found = msgspec.json.decode(content) if isinstance(content, bytes) else content
        for step in steps:
            if isinstance(found, list | tuple):
                found = found[int(step)]
            else:
                found = found[step] if isinstance(found, dict) else getattr(found, step)
    except (ValueError, LookupError, AttributeError, RecursionError):
        return ""
    return f"; got {shown(found)}"
