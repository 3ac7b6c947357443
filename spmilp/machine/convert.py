"""An expanded machine as JSON, as it stands in ``problem.json``; rates are ``"n/d"`` strings."""

from dataclasses import fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, Field, ValidationError

from spmilp.errors import FileError
from spmilp.machine import machine as m
from spmilp.machine.fields import (
    LARGEST,
    Amount,
    Count,
    FileModel,
    Flag,
    Rate,
    Ratio,
    what_is_wrong,
)

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Coordinate: TypeAlias = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]


class ByteRangeModel(FileModel):
    """The addresses ``[start, end)``."""

    start: Amount
    end: Amount


class MemoryModel(FileModel):
    """One memory; sizes in bytes, energy in femtojoules."""

    index: Amount
    name: Text
    kind: m.MemoryKind
    size: Count | None
    alignment: Count
    reserved: tuple[ByteRangeModel, ...]
    banks: Count | None
    energy_per_byte: Amount | None


class ArrayModel(FileModel):
    """Multipliers of one data type; ``unroll`` lists ``[loop, size]``."""

    dtype: Text
    unroll: tuple[tuple[Text, Count], ...]


class KindModel(FileModel):
    """A kind of core; ``lanes`` and ``mac_energy`` list ``[dtype, number]``."""

    index: Amount
    name: Text
    arrays: tuple[ArrayModel, ...]
    lanes: tuple[tuple[Text, Count], ...]
    launch: Amount
    operators: tuple[Text, ...] | None
    mac_energy: tuple[tuple[Text, Amount], ...]


class CoreModel(FileModel):
    """A core; ``kind`` and ``memory`` are positions in their lists."""

    index: Amount
    name: Text
    kind: Amount
    memory: Amount
    position: tuple[Coordinate, Coordinate] | None


class LinkModel(FileModel):
    """A directed link; ``rate`` in bytes per cycle, ``latency`` in cycles."""

    index: Amount
    source: Text
    target: Text
    rate: Rate
    latency: Amount
    energy_per_byte: Amount | None


class EngineModel(FileModel):
    """A DMA engine; ``owner`` and ``reaches`` are positions of memories."""

    index: Amount
    name: Text
    owner: Amount | None
    reaches: tuple[Amount, ...] | None
    loads: Flag
    stores: Flag
    channels: Count
    setup: Amount
    rate: Rate
    longest: Count | None
    dimensions: Count | None
    congruence: Count
    multicast: Flag
    descriptors: Count | None
    controller: Text | None = None


class RemoteModel(FileModel):
    """Reads of operands in remote scratchpads."""

    cycles_per_byte_hop: Ratio
    longest_route: Count | None


class MachineModel(FileModel):
    """A machine with every object written out; ``index`` is the position in its list."""

    name: Text
    description: str
    frequency: Count | None
    memories: tuple[MemoryModel, ...]
    kinds: tuple[KindModel, ...]
    cores: tuple[CoreModel, ...]
    links: tuple[LinkModel, ...]
    engines: tuple[EngineModel, ...]
    routing: m.Routing
    positions: tuple[tuple[Text, tuple[Coordinate, Coordinate]], ...]
    remote: RemoteModel | None
    events: Count | None
    event_maximum: Count | None = None
    unverified: tuple[str, ...]


def machine_to_json(machine: m.Machine) -> dict[str, Any]:
    """Return a machine as JSON data, in the form of :class:`MachineModel`."""
    plain: dict[str, Any] = _plain(machine)
    if machine.event_maximum is None:
        # Younger than the format: left out where it says nothing, older files keep their hashes.
        del plain["event_maximum"]
    for engine in plain["engines"]:
        if engine["controller"] is None:
            del engine["controller"]
    return plain


def machine_from_json(content: object) -> m.Machine:
    """Return the machine that JSON data describes.

    Raises
    ------
    FileError
        If the data breaks the format or does not make a consistent machine.
    """
    try:
        return machine_of(MachineModel.model_validate(content))
    except ValidationError as error:
        raise FileError(f"machine: {what_is_wrong(error, MachineModel)}") from error
    except ValueError as error:
        raise FileError(f"machine: {error}") from error


def machine_of(model: MachineModel) -> m.Machine:
    """Return the machine of a model.

    Raises
    ------
    ValueError
        If it is not consistent; see :class:`~spmilp.machine.machine.Machine`.
    """
    given = _fields(model)
    given["memories"] = tuple(_memory(memory) for memory in model.memories)
    given["kinds"] = tuple(_kind(kind) for kind in model.kinds)
    given["cores"] = tuple(m.Core(**_fields(core)) for core in model.cores)
    given["links"] = tuple(m.Link(**_fields(link)) for link in model.links)
    given["engines"] = tuple(m.Engine(**_fields(engine)) for engine in model.engines)
    if model.remote is not None:
        given["remote"] = m.RemoteReads(**_fields(model.remote))
    return m.Machine(**given)


def _memory(model: MemoryModel) -> m.Memory:
    given = _fields(model)
    try:
        given["reserved"] = tuple(m.ByteRange(**_fields(taken)) for taken in model.reserved)
    except ValueError as error:
        raise ValueError(f"memory {model.name}: reserved: {error}") from error
    return m.Memory(**given)


def _kind(model: KindModel) -> m.CoreKind:
    given = _fields(model)
    given["arrays"] = tuple(m.MacArray(**_fields(array)) for array in model.arrays)
    if model.operators is not None:
        given["operators"] = frozenset(model.operators)
    return m.CoreKind(**given)


def _fields(model: BaseModel) -> dict[str, Any]:
    """Return the values of a model's fields, which bear the names of the object's fields."""
    return {name: getattr(model, name) for name in type(model).model_fields}


def _plain(value: Any) -> Any:
    """Return an object as JSON data."""
    if is_dataclass(value):
        # What has no part in comparisons is no part of the machine's description either.
        return {
            field.name: _plain(getattr(value, field.name))
            for field in fields(value)
            if field.compare
        }
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    return value.value if isinstance(value, StrEnum) else value
