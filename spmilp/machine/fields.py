"""YAML to plain data, numbers in files, and messages when a file breaks its format's rules."""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)

from spmilp.errors import FileError
from spmilp.formats import near_matches as near_matches
from spmilp.formats import ratio_from
from spmilp.units import LARGEST as LARGEST

MOST_LINES = 12
"""Errors of one file that are listed; the others are counted."""

MOST_NODES = 1_000_000
"""Values of a YAML file with its aliases written out."""


def rate_from(value: object) -> Fraction:
    """Return a rate as an exact fraction: 8, 23.5 or "47/2".

    Raises
    ------
    ValueError
        If the value is no number, not positive, or not of a denominator that solvers can scale.
    """
    rate = ratio_from(value)
    if rate == 0:
        raise ValueError("expected a number > 0")
    return rate


def _shown(rate: Fraction) -> str:
    return f"{rate.numerator}/{rate.denominator}"


_WRITTEN = PlainSerializer(_shown, return_type=str)
_TEXT = {"type": "string", "pattern": r"^\d+(/\d+|\.\d+)?$"}

Rate: TypeAlias = Annotated[
    Fraction,
    PlainValidator(rate_from),
    _WRITTEN,
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEXT]}),
]
"""An exact number > 0: 8, 23.5 or "47/2"."""

Ratio: TypeAlias = Annotated[
    Fraction,
    PlainValidator(ratio_from),
    _WRITTEN,
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, _TEXT]}),
]
"""An exact number that may be zero."""

Count: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Amount: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]


class FileModel(BaseModel):
    """A part of a file: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def what_is_wrong(error: ValidationError, model: type[BaseModel]) -> str:
    """Return one line per error: field path, value, what is expected.

    Parameters
    ----------
    model
        What the file describes: in the place of an unknown field its fields are named.
    """
    details = _first_causes(error.errors(include_url=False, include_context=False))
    lines = [_line(detail, model) for detail in details[:MOST_LINES]]
    if len(details) > MOST_LINES:
        lines.append(f"and {len(details) - MOST_LINES} more")
    return "\n  ".join(lines)


def _first_causes(details: Sequence[Any]) -> list[Any]:
    """Leave out that a list is too short whose rows are what is wrong."""
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(
            len(place) > len(detail["loc"]) and place[: len(detail["loc"])] == detail["loc"]
            for place in places
        )
    ]


def field_names(model: type[BaseModel], place: Sequence[str | int] = ()) -> tuple[str, ...]:
    """Return the names of the fields that a model has in a place, sorted.

    Parameters
    ----------
    place
        The fields, and positions in lists, that lead to it from the top.
    """
    schema = model.model_json_schema()
    parts = _alternatives(schema, schema)
    for step in place:
        inner = [
            part.get("items", {}) if isinstance(step, int) else part.get("properties", {}).get(step)
            for part in parts
        ]
        # Where one of several forms was expected, a step names the form.
        parts = [one for some in inner if some for one in _alternatives(schema, some)] or parts
    return tuple(sorted({name for part in parts for name in part.get("properties", {})}))


def _alternatives(schema: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the forms that a part of a schema may have, without references."""
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    forms = [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]
    return [part, *(one for form in forms for one in _alternatives(schema, form))]


def _unknown(name: str, known: Sequence[str]) -> str:
    listed = f"; known here: {', '.join(known)}" if known else ""
    return f"unknown field{near_matches(name, known) or listed}"


def _line(detail: Any, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in detail["loc"]) or "the file"
    if detail["type"] == "missing":
        return f"{where}: is missing"
    if detail["type"] == "extra_forbidden":
        *place, name = detail["loc"]
        return f"{where}: {_unknown(str(name), field_names(model, place))}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if isinstance(detail["input"], dict) and detail["type"] == "value_error":
        return f"{where}: {message}"  # which names the fields
    value = repr(detail["input"])
    shown = value if len(value) <= 60 else f"{value[:57]}..."
    return f"{where}: {message}; got {shown}"


A_MACHINE = "the fields of a machine (name, core_kinds, scratchpads, dram)"


def fields_of(data: bytes, origin: str, expected: str = A_MACHINE) -> dict[str, object]:
    """Return the fields of a YAML file whose top is a mapping.

    Parameters
    ----------
    expected
        What a file that is no mapping is told that it should hold.

    Raises
    ------
    FileError
        If it is no YAML, has a field twice, or is no mapping.
    """
    try:
        # The loader descends from yaml.SafeLoader: it makes plain data only.
        loader = _UniqueKeys(data)
        top = loader.get_single_node()
        if top is not None and _nodes_in(top, {}) > MOST_NODES:
            raise FileError(f"{origin}: its aliases stand for more than {MOST_NODES:,} values")
        content = None if top is None else loader.construct_document(top)
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


def _nodes_in(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values that a node stands for, those of its aliases each time.

    Parameters
    ----------
    known
        Counts by identity; of nodes that are being counted, one that is too large.
    """
    if id(node) not in known:
        known[id(node)] = MOST_NODES + 1
        inside: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            inside = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            inside = node.value
        known[id(node)] = 1 + sum(_nodes_in(part, known) for part in inside)
    return known[id(node)]


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a mapping in which a key occurs twice; YAML forbids it, PyYAML takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node."""
        seen: set[str] = set()
        names = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in names:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the field {key.value} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)
