"""Versioned JSON files: how problems and plans are written, line by line, and read with care."""

import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, reduce
from io import BytesIO
from itertools import islice
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails

from spmilp.errors import FileError
from spmilp.machine.fields import FileModel, what_is_wrong

M = TypeVar("M", bound=FileModel)
T = TypeVar("T")

ROWS_AT_A_TIME = 4096

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")

MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Byte order marks, which JSON in UTF-8 may not begin with."""


class _Header(BaseModel):
    """Fields of every file, whatever else it holds."""

    model_config = ConfigDict(extra="ignore")

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


def read_document(path: Path | str, data: bytes, model: type[M], name: str, version: str) -> M:
    """Return the content of a file as a model that has been validated.

    A file of the same major version is read. What a newer minor version has added is ignored.

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
        header = _Header.model_validate_json(data)
    except ValidationError as error:
        raise FileError(f"{path}: no {name} file: {what_is_wrong(error, _Header)}") from error
    if header.format != name:
        raise FileError(f"{path}: format: expected {name!r}, got {_shown(header.format)}")
    major, minor = _numbers(path, header.format_version)
    known_major, known_minor = _numbers(path, version)
    if major != known_major:
        raise FileError(
            f"{path}: format_version: {header.format_version} cannot be read; expected "
            f"{known_major}.x"
        )
    try:
        return _validated(data, model, tolerant=minor > known_minor)
    except ValidationError as error:
        raise FileError(f"{path}: {what_is_wrong(error, model)}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error


def refuse_repeated_fields(path: Path | str, data: bytes) -> None:
    """Refuse a file in which an object has a field twice: readers differ in which one they take.

    Parameters
    ----------
    data
        JSON that has been read before.

    Raises
    ------
    FileError
        If there is such an object; the message names the field.
    """

    def only_once(fields: list[tuple[str, Any]]) -> None:
        if len(dict(fields)) < len(fields):
            names = [name for name, _ in fields]
            twice = next(name for name in names if names.count(name) > 1)
            index = dict(fields).get("index")
            where = f" of index {index}" if isinstance(index, int) else ""
            raise FileError(f"{path}: an object{where} has the field {_shown(twice)} twice")

    json.loads(data, object_pairs_hook=only_once)


class Rows:
    """A table whose rows are made when asked for: a large one is never there as a whole."""

    def __init__(self, make: Callable[[T], dict[str, Any]], items: Sequence[T]) -> None:
        self._make = make
        self._items = items

    def parts(self) -> Iterator[list[dict[str, Any]]]:
        """Yield all rows, some thousands at a time."""
        for first in range(0, len(self._items), ROWS_AT_A_TIME):
            yield [self._make(item) for item in self._items[first : first + ROWS_AT_A_TIME]]


class Lines:
    """A table whose rows are made as text; what they are made from is validated by columns.

    Parameters
    ----------
    lines
        The rows; asked for once.
    columns
        By name of a field, its value in each row. What is missing here follows from the others.
    """

    def __init__(self, lines: Iterable[str], columns: Mapping[str, Sequence[Any]]) -> None:
        self._lines = iter(lines)
        self.columns = columns

    def parts(self) -> Iterator[list[str]]:
        """Yield all rows, some thousands at a time."""
        while part := list(islice(self._lines, ROWS_AT_A_TIME)):
            yield part


def as_text(document: Mapping[str, Any], model: type[BaseModel] | None = None) -> str:
    """Return :func:`as_bytes` as text."""
    return as_bytes(document, model).decode()


def as_bytes(document: Mapping[str, Any], model: type[BaseModel] | None = None) -> bytes:
    """Return JSON in ASCII: one line for each plain field and each row of a table.

    The same document gives the same bytes, on every machine. They are in memory once: there may be
    hundreds of millions of them.

    Parameters
    ----------
    model
        What the document must be; tables are :class:`Rows` or :class:`Lines` there.

    Raises
    ------
    pydantic.ValidationError
        If it is not.
    """
    for name, value in document.items():
        if model is not None and isinstance(value, Lines):
            validate_columns(model, name, value.columns)
    written = BytesIO()
    try:
        for piece in _pieces(document, model):
            written.write(piece.encode())
        written.write(b"\n")
        return written.getvalue()
    except ValidationError:
        if model is not None:
            # Only the whole document has rows with their own numbers, for the message.
            model.model_validate({name: _whole(value) for name, value in document.items()})
        raise


def schema_text(model: type[BaseModel], title: str) -> str:
    """Return the JSON Schema of a format, as it is shipped."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(),
        "title": title,
    }
    return f"{json.dumps(schema, indent=2)}\n"


def row(**values: Any) -> dict[str, Any]:
    """Return the fields of a row that say something: neither ``None`` nor an empty tuple."""
    return {name: value for name, value in values.items() if value is not None and value != ()}


def _pieces(document: Mapping[str, Any], model: type[BaseModel] | None) -> Iterator[str]:
    """Yield the text of a document piece by piece, each of them validated."""
    plain = {
        name: [] if isinstance(value, Rows | Lines) else value for name, value in document.items()
    }
    if model is not None:
        model.model_validate(plain)
    yield "{"
    for number, (name, value) in enumerate(document.items()):
        yield f"{',' if number else ''}\n  {json.dumps(name)}: "
        if not isinstance(value, Rows | Lines):
            yield _expanded(value, 1)
            continue
        begin = "[\n    "
        for part in _lines(value, name, plain, model):
            yield begin + ",\n    ".join(part)
            begin = ",\n    "
        yield "[]" if begin[0] == "[" else "\n  ]"
    yield "\n}" if document else "}"


def _lines(
    table: Rows | Lines, name: str, plain: Mapping[str, Any], model: type[BaseModel] | None
) -> Iterator[list[str]]:
    """Yield the rows of a table as text; those that were not validated by columns are here."""
    if isinstance(table, Lines):
        yield from table.parts()
        return
    for part in table.parts():
        if model is not None:
            model.model_validate({**plain, name: part})
        yield list(map(json.dumps, part))


def _whole(value: Any) -> Any:
    """Return the rows of a table; of one that has been validated by columns, none."""
    if isinstance(value, Lines):
        return []
    return [row for part in value.parts() for row in part] if isinstance(value, Rows) else value


def _expanded(value: Any, depth: int) -> str:
    """Write objects of the first two levels field by field, and tables row by row."""
    pad, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, Mapping) and depth < 2 and value:
        fields = (
            f"{pad}{json.dumps(name)}: {_expanded(v, depth + 1)}" for name, v in value.items()
        )
        return "{\n" + ",\n".join(fields) + f"\n{end}}}"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return "[\n" + ",\n".join(f"{pad}{json.dumps(element)}" for element in value) + f"\n{end}]"
    return json.dumps(value)


def _numbers(path: Path | str, version: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise FileError(f"{path}: format_version: expected major.minor, got {_shown(version)}")
    return int(found[1]), int(found[2])


def _validated(data: bytes, model: type[M], tolerant: bool) -> M:
    """Return the model that JSON describes; a tolerant reader ignores unknown fields."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        if not tolerant or _kinds(error) != {"extra_forbidden"}:
            raise
        document = json.loads(data)
        for detail in error.errors(include_url=False, include_input=False):
            *path, name = detail["loc"]
            reduce(getitem, path, document).pop(name, None)
        return model.model_validate(document)


def _kinds(error: ValidationError) -> set[str]:
    return {detail["type"] for detail in error.errors(include_url=False, include_input=False)}


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")


def validate_columns(
    model: type[BaseModel], table: str, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Validate fields of all rows of a table.

    Parameters
    ----------
    model
        What has the table, a tuple of models of rows.
    columns
        By name of a field, its value in each row.

    Raises
    ------
    pydantic.ValidationError
        If a row is not as its model wants it; its lines have the numbers of rows.
    """
    found: list[InitErrorDetails] = []
    for name, values in columns.items():
        try:
            _column_of(model, table, name).validate_python(values)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                row, *inside = detail["loc"]
                found.append(
                    InitErrorDetails(
                        type=detail["type"],
                        loc=(table, row, name, *inside),
                        input=detail["input"],
                        ctx=detail.get("ctx", {}),
                    )
                )
    if found:
        found.sort(key=lambda line: int(line["loc"][1]))
        raise ValidationError.from_exception_data(model.__name__, found)


@cache
def _column_of(model: type[BaseModel], table: str, name: str) -> TypeAdapter[Any]:
    """Return what validates the values of one field in all rows."""
    row_model = get_args(model.model_fields[table].annotation)[0]
    field = row_model.model_fields[name]
    # pydantic has taken the field's type apart into a plain type and what is asked of it.
    kind: Any = (
        Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    )
    return TypeAdapter(list[kind])
