"""Versioned JSON files: how problems and plans are written, line by line, and read with care."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.machine.fields import FileModel, field_names, what_is_wrong

M = TypeVar("M", bound=FileModel)


class _Header(BaseModel):
    """What every file states, whatever else it holds."""

    model_config = ConfigDict(extra="ignore")

    format: str
    format_version: str


def read_document(path: Path | str, model: type[M], name: str, version: str) -> M:
    """Return what a file holds, as a model that has been validated.

    A file of the same major version is read. What a newer minor version has added is ignored.

    Parameters
    ----------
    name, version
        The format that is expected, and the version ``major.minor`` that this code writes.

    Raises
    ------
    FileError
        If the file cannot be read or is not of the format; the message names file, field, value and
        what is expected.
    """
    data = read_bytes(path)
    try:
        header = _Header.model_validate_json(data)
    except ValidationError as error:
        raise FileError(f"{path}: no {name} file: {what_is_wrong(error)}") from error
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
        return model.model_validate_json(data)
    except ValidationError as error:
        if minor > known_minor and _only_unknown_fields(error):
            return model.model_validate(_without_unknown_fields(data, error))
        known = field_names(model) if _has_unknown_fields(error) else ()
        raise FileError(f"{path}: {what_is_wrong(error, known)}") from error


def as_text(document: Mapping[str, Any]) -> str:
    """Return JSON in ASCII: one line for each plain field and each row of a table.

    The same document gives the same text, on every machine.
    """
    return f"{_expanded(document, 0)}\n"


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
    parts = version.split(".")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() and len(p) < 7 for p in parts):
        raise FileError(f"{path}: format_version: expected major.minor, got {_shown(version)}")
    return int(parts[0]), int(parts[1])


def _only_unknown_fields(error: ValidationError) -> bool:
    return all(kind == "extra_forbidden" for kind in _kinds(error))


def _has_unknown_fields(error: ValidationError) -> bool:
    return any(kind == "extra_forbidden" for kind in _kinds(error))


def _kinds(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        yield detail["type"]


def _without_unknown_fields(data: bytes, error: ValidationError) -> Any:
    document = json.loads(data)
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        *path, name = detail["loc"]
        parent = document
        for step in path:
            parent = parent[step]
        parent.pop(name, None)
    return document


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")
