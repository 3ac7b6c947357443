"""JSON and YAML files: msgspec decodes and validates them; messages name field and value.

What a file holds is stated once: by the fields of the frozen dataclasses that it is read into, and
the types in :mod:`spmilp.units` that bound their numbers.
"""

import dataclasses
import gc
import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import yaml
from msgspec import Struct

from spmilp.errors import FileError
from spmilp.units import LARGEST

LARGEST_DENOMINATOR = 1000
"""Rates with larger denominators would blow up the integers that solvers scale them to."""

MOST_BYTES = 1 << 20
"""Largest YAML file: the largest preset has 4 KiB, and so many bytes take ten seconds."""

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
_RATE = re.compile(r"\d{1,15}(/0*[1-9]\d{0,14}|\.\d{1,15})?")

K = TypeVar("K", bound=Struct)


class FileRow(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a file that people write."""


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

    Raises a ``ValueError`` if the value is no number, negative, or not of a denominator that
    solvers can scale.
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


def shown(value: object) -> str:
    """Return a value of a file as it is shown in messages: in ASCII, and not for long."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# Reading ------------------------------------------------------------------------------------------


def read_document(
    path: object,
    data: bytes,
    kind: type[K],
    name: str,
    version: str,
    *,
    also: Mapping[type, str] = MappingProxyType({}),
) -> tuple[K, dict[str, Any]]:
    """Return what a JSON file of the same major version describes, and its plain content.

    A field that stands twice is refused, because readers differ in which one they take; so is a
    field that is not of the format, but for files of a newer minor version. ``version`` is the one
    that this code writes; objects of a class in ``also`` may have that field besides.

    Raises a ``FileError`` if the file is not of the format; the message names file, field, value
    and what is expected.
    """
    try:
        header = decoded(data, _Header)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: no {name} file: {error}") from error
    if header.format != name:
        raise FileError(f"{path}: format: expected {name!r}, got {shown(header.format)}")
    try:
        numbers, known = _version_numbers(header.format_version), _version_numbers(version)
        if numbers[0] != known[0]:
            older = "; make the file again: transfers took other times then" * (numbers < known)
            raise ValueError(
                f"format_version: {header.format_version} cannot be read; expected {known[0]}.x"
                f"{older}"
            )
        file = decoded(data, kind)
        content = _without_doubles(data)
        if numbers <= known:
            for said in _unknown(kind, content, (), also):
                raise ValueError(said)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error
    return file, content


def decoded(data: bytes, kind: type[K]) -> K:
    """Return JSON as what it describes.

    Raises a ``ValueError`` if it is no JSON or describes something else; the message names field
    and value.
    """
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        said = _what_is_wrong(kind, msgspec.json.decode(data), strict=True)
        raise ValueError(said or str(error)) from error


def converted(content: object, kind: type[K], *, strict: bool = True) -> K:
    """Return the fields of a file, as :func:`fields_of` has them, as what they describe.

    Texts are no numbers, unless it is not ``strict``.

    Raises a ``ValueError`` if they describe something else; the message names field, value and what
    is expected.
    """
    try:
        return msgspec.convert(content, kind, dec_hook=_decoded, strict=strict)
    except msgspec.ValidationError as error:
        config = getattr(kind, "__struct_config__", None)
        takes_any = config is not None and not config.forbid_unknown_fields
        unknown = "" if takes_any else next(_unknown(kind, content, (), {}), "")
        said = unknown or _what_is_wrong(kind, content, strict=strict)
        raise ValueError(said or str(error)) from error


def _version_numbers(version: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"format_version: expected major.minor, got {shown(version)}")
    return int(found[1]), int(found[2])


def _decoded(kind: type, value: object) -> object:
    """Read what JSON has no type for."""
    if kind is Fraction:
        return ratio_from(value)
    raise ValueError("is no part of a file")


def _without_doubles(data: bytes) -> Any:
    """Return the content of JSON in which no object has a field twice."""

    def once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(fields)
        if len(found) < len(fields):
            names = [name for name, _ in fields]
            twice = next(name for name in names if names.count(name) > 1)
            where = f" of index {found['index']}" if isinstance(found.get("index"), int) else ""
            raise ValueError(f"an object{where} has the field {shown(twice)} twice")
        return found

    content = msgspec.json.decode(data)
    if msgspec.json.encode(content) == msgspec.json.format(data, indent=-1):
        return content
    # A field may stand twice, or only numbers or texts be written in another way.
    return json.loads(data, object_pairs_hook=once)


def fields_of(data: bytes, origin: str, expected: str) -> dict[str, object]:
    """Return the fields of a YAML file whose top is a mapping.

    A file that is no mapping is told that it should hold what is ``expected``.

    Raises a ``FileError`` if it is no YAML or too large, has a field twice, an alias or half a
    surrogate pair, or is no mapping.
    """
    if len(data) > MOST_BYTES:
        raise FileError(f"{origin}: {len(data):,} B, expected at most {MOST_BYTES:,} B")
    try:
        # The loader descends from yaml.SafeLoader: it makes plain data only.
        content = yaml.load(data, _StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}" if mark else ""
        raise FileError(f"{origin}: no valid YAML{where}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FileError(f"{origin}: no valid YAML: {reason}") from error
    if not isinstance(content, dict):
        raise FileError(f"{origin}: expected {expected}, got {type(content).__name__}")
    return content


class _StrictLoader(yaml.SafeLoader):
    """Refuses what YAML allows to grow without end, and what YAML forbids and PyYAML takes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node, which may be no alias: a few of them stand for billions."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            said = "aliases are not read; write the value again"
            raise yaml.composer.ComposerError(None, None, said, mark)
        return super().compose_node(parent, index)

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        """Return a text, which may have no half of a surrogate pair."""
        node = super().compose_scalar_node(anchor)
        node.value.encode()
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node, in which no key may stand twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the field {key.value} is given twice", key.start_mark
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else "")
        return super().construct_mapping(node, deep)


# Messages -----------------------------------------------------------------------------------------


def _what_is_wrong(kind: Any, content: Any, *, strict: bool) -> str:
    """Return the path of the innermost part that is not of its type, why not, and what it is."""
    path: tuple[str, ...] = ()
    why = _why_not(kind, content, strict=strict)
    wrong: Any = True
    while wrong:
        tried = (
            (name, of, value, _why_not(of, value, strict=strict))
            for name, of, value in _parts(kind, content)
        )
        wrong = next((part for part in tried if part[-1]), None)
        if wrong:
            name, kind, content, why = wrong
            path = (*path, name) if name else path
    place, of = ".".join(path), _chosen(kind, content)
    missing = re.fullmatch(r"Object missing required field `(.*)`", why)
    if missing:
        return f"{'.'.join((*path, missing[1]))}: is missing"
    if _fields(of) and not why.startswith("Expected"):
        # Of the object itself; those of tables say which one it is.
        return why if dataclasses.is_dataclass(of) or not path else f"{place}: {why}"
    choices = get_args(of) if get_origin(of) is Literal else ()
    if isinstance(of, type) and issubclass(of, Enum):
        choices = tuple(one.value for one in of)
    if choices:
        why = f"expected one of {', '.join(map(str, choices))}"
    why = re.sub(r"(expected .*), got \w+", r"\1", why.replace("`", "").replace("E", "e", 1))
    return f"{place or 'the file'}: {why}; got {shown(content)}"


def _why_not(kind: Any, content: object, *, strict: bool) -> str:
    """Return why some content is not of a type, without the place; empty where it is."""
    try:
        msgspec.convert(content, kind, dec_hook=_decoded, strict=strict)
    except ValueError as error:
        return str(error).rpartition(" - at `")[0] or str(error)
    return ""


def _unknown(
    kind: Any, content: Any, path: tuple[str, ...], also: Mapping[type, str]
) -> Iterator[str]:
    """Yield what is said of fields that their types do not have."""
    kind = _chosen(kind, content)
    known = _fields(kind)
    if known and isinstance(content, dict) and not content.keys() <= known.keys():
        for name in content:
            if name not in known and name != also.get(kind):
                names = sorted(known)
                hint = near_matches(str(name), names) or f"; known here: {', '.join(names)}"
                place = ".".join((*path, str(name)))
                yield f"{shown(place)[1:-1]}: unknown field{hint}"
    if _has_rows(kind):
        for name, of, value in _parts(kind, content):
            if isinstance(value, dict | list):
                yield from _unknown(of, value, (*path, name), also)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a part of a file, and their types; nothing for anything else."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {one.name: hints[one.name] for one in dataclasses.fields(kind) if one.compare}
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return {}
    hints = get_type_hints(kind, include_extras=True)
    names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    tag = kind.__struct_config__.tag_field
    return {written: hints[name] for written, name in names} | ({tag: str} if tag else {})


@cache
def _has_rows(kind: Any) -> bool:
    """Say whether parts of a part of a file have fields; those of most large tables have none."""
    inside = _fields(kind).values() or get_args(kind)
    return any(_fields(of) or _has_rows(of) for of in inside)


def _parts(kind: Any, content: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and value of what is inside a part of a file; keys have no name."""
    kind = _chosen(kind, content)
    types = get_args(kind)
    if isinstance(content, dict):
        if get_origin(kind) is dict:
            for key, value in content.items():
                yield "", types[0], key
                yield str(key), types[1], value
        elif get_origin(kind) in (Union, UnionType):  # whose tag none of them has
            tags = [one.__struct_config__.tag for one in types]
            field = types[0].__struct_config__.tag_field
            if field in content:
                yield field, Literal[tuple(tags)], content[field]
        for name, of in _fields(kind).items():
            if name in content:
                yield name, of, content[name]
    elif isinstance(content, list | tuple) and get_origin(kind) is tuple:
        several = types[-1] is ...
        for number, value in enumerate(content if several else content[: len(types)]):
            yield str(number), types[0 if several else number], value


def _chosen(kind: Any, content: object) -> Any:
    """Return the one of several types that some content is of, by its tag; without bounds."""
    if get_origin(kind) is Annotated:
        return _chosen(get_args(kind)[0], content)
    if get_origin(kind) not in (Union, UnionType):
        return kind
    kinds = [one for one in get_args(kind) if one is not type(None)]
    tag_field = getattr(getattr(kinds[0], "__struct_config__", None), "tag_field", None)
    if tag_field is None or not isinstance(content, dict):
        return _chosen(kinds[0], content)
    tag = content.get(tag_field)
    return next((one for one in kinds if one.__struct_config__.tag == tag), kind)


# Writing ------------------------------------------------------------------------------------------


@cache
def _written(kind: type) -> list[tuple[str, object]]:
    """Return the fields that say what an object is, with their defaults."""
    return [(one.name, one.default) for one in dataclasses.fields(kind) if one.compare]


def plain(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, but for those that hold their default."""
    found = ((name, getattr(value, name), default) for name, default in _written(value.__class__))
    return {name: inside for name, inside, default in found if inside != default}


def encoded(document: Mapping[str, Any]) -> bytes:
    """Return a file: one line for each plain field and each row of a table, in ASCII.

    Tables are lists of mappings. Equal content gives equal bytes, on every machine.
    """
    return _expanded(document, 0) + b"\n"


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
