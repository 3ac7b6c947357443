"""Pins by names, as people write them in a file, and what they are as numbers of a problem."""

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from msgspec import Meta

from spmilp.errors import FileError, PinError
from spmilp.files import read_bytes
from spmilp.formats import FileRow, converted, fields_of, near_matches
from spmilp.machine.machine import MemoryKind
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import BufferPin, Pins, TaskPin
from spmilp.problem.problem import Buffer, Problem, Task
from spmilp.units import Amount, Count

T = TypeVar("T")

COMPARED = 2000
"""Names among which one is looked for that was meant."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=300)]
Names: TypeAlias = Name | Annotated[tuple[Name, ...], Meta(min_length=1, max_length=1000)]
"""One name or several; ``*`` in one stands for anything."""


class TaskRow(FileRow, frozen=True, kw_only=True):
    """Tasks, by their names or those of their groups: on which cores they run, and when."""

    task: Names
    cores: Names | None = None
    not_before: Amount = 0
    not_after: Count | None = None

    def __post_init__(self) -> None:
        if self.cores is None and not self.not_before and self.not_after is None:
            raise ValueError("expected cores, not_before or not_after")
        if self.not_after is not None and self.not_before >= self.not_after:
            raise ValueError(f"not_before {self.not_before} >= not_after {self.not_after}")


class BufferRow(FileRow, frozen=True, kw_only=True):
    """Buffers, by their names or those of their tensors: in which memories they lie."""

    buffer: Names
    memory: Names
    address: Amount | None = None
    resident: bool = False


class TilesRow(FileRow, frozen=True, kw_only=True):
    """Groups of a network, and their tiles, as ``spmilp explain --groups`` says them."""

    group: Names
    tiles: Annotated[str, Meta(pattern=r"^[0-9]{1,6}(x[0-9]{1,6}){0,7}(/[0-9]{1,6})?$(?!\n)")]


Table: TypeAlias = Annotated[tuple[T, ...], Meta(max_length=10_000)]


class NamedPins(FileRow, frozen=True, kw_only=True):
    """The fields of a file of pins."""

    description: str = ""
    forbid_cores: Name | tuple[Name, ...] = ()
    tasks: Table[TaskRow] = ()
    buffers: Table[BufferRow] = ()
    tiles: Table[TilesRow] = ()

    @property
    def are_of_tiles_alone(self) -> bool:
        """Whether any plan of a problem with the pinned tiles keeps to them."""
        return not (self.forbid_cores or self.tasks or self.buffers)


NO_NAMED_PINS = NamedPins()

PinsGiven: TypeAlias = str | Path | Mapping[str, object] | NamedPins | None
"""A file of pins, its fields, or what was read from one."""


def read_pins(given: PinsGiven) -> NamedPins:
    """Return pins from a YAML file, or from the fields of one.

    Raises a ``FileError`` if it is no YAML or breaks the format; the message names the field.
    """
    if given is None:
        return NO_NAMED_PINS
    if isinstance(given, NamedPins):
        return given
    origin, content = "pins", given
    if not isinstance(given, Mapping):
        origin, expected = str(given), "the fields of pins (tasks, buffers, tiles, ...)"
        content = fields_of(read_bytes(given), origin, expected)
    try:
        return converted(content, NamedPins)
    except ValueError as error:
        raise FileError(f"{origin}: {error}") from error


def with_pins(problem: Problem, named: NamedPins) -> Problem:
    """Return a problem with pins besides those that it has; those of tiles are left out.

    Where several rows speak of one task or buffer, all of them hold.

    Raises a ``PinError`` if a name is not known, or pins contradict each other or the problem.
    """
    pinned = problem
    if not named.are_of_tiles_alone:
        pinned = replace(problem, pins=_both(problem, named))
    refuse_contradictions(pinned)
    return pinned


def _both(problem: Problem, named: NamedPins) -> Pins:
    """Return the pins that a problem has and those that are named."""
    machine = problem.machine
    cores = Known("core", [(core.name, "") for core in machine.cores])
    names = ["" if one.kind is MemoryKind.DRAM else one.name for one in machine.memories]
    memories = Known("scratchpad or shared memory", [(name, "") for name in names])
    tasks_known = Known("task or group", [name_and_origin(one) for one in problem.tasks])
    buffers_known = Known("buffer or tensor", [name_and_origin(one) for one in problem.buffers])
    tasks = {pin.task: pin for pin in problem.pins.tasks}
    for row in named.tasks:
        allowed = cores.all(row.cores or ())
        for index in tasks_known.all(row.task):
            who = f"task {problem.tasks[index].name}"
            old = tasks.get(index, TaskPin(task=index))
            ends = [end for end in (old.not_after, row.not_after) if end is not None]
            start, end = max(old.not_before, row.not_before), min(ends, default=None)
            common = cores.common(f"{who} is pinned to", old.cores, allowed)
            if end is not None and start >= end:
                raise PinError(f"pins: {who}: not_before {start} >= not_after {end}")
            tasks[index] = TaskPin(task=index, cores=common, not_before=start, not_after=end)
    buffers = {pin.buffer: pin for pin in problem.pins.buffers}
    for place in named.buffers:
        wanted = memories.all(place.memory)
        for index in buffers_known.all(place.buffer):
            who = f"buffer {problem.buffers[index].name} is pinned to"
            kept = buffers.get(index, BufferPin(buffer=index, memories=wanted))
            if None not in (kept.address, place.address) and kept.address != place.address:
                raise PinError(f"pins: {who} address {kept.address} and to address {place.address}")
            buffers[index] = BufferPin(
                buffer=index,
                memories=memories.common(who, kept.memories, wanted),
                address=place.address if kept.address is None else kept.address,
                resident=kept.resident or place.resident,
            )
    return Pins(
        forbidden=tuple(sorted({*problem.pins.forbidden, *cores.all(named.forbid_cores)})),
        tasks=tuple(tasks[index] for index in sorted(tasks)),
        buffers=tuple(buffers[index] for index in sorted(buffers)),
    )


def name_and_origin(one: Task | Buffer) -> tuple[str, str]:
    """Return a name, and that of the group or tensor of which it is a tile."""
    return one.name, one.tile.of if one.tile else ""


class Known:
    """Things that have two names each: their own, and that of their group or tensor.

    Empty names are nobody's; ``what`` is what messages call the things.
    """

    def __init__(self, what: str, names: Sequence[tuple[str, str]]) -> None:
        self._what = what
        self._names = names
        self._of: dict[str, list[int]] = {}
        for index, pair in enumerate(names):
            for name in dict.fromkeys(filter(None, pair)):
                self._of.setdefault(name, []).append(index)

    def names(self, indices: Iterable[int]) -> str:
        """Return the names of some of them, as a list."""
        return ", ".join(self._names[index][0] for index in indices)

    def common(self, who: str, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        """Return what two lists of these things have in common; an empty one is any."""
        if not one or not other:
            return one or other
        common = tuple(index for index in one if index in other)
        if not common:
            raise PinError(f"pins: {who} {self.names(one)}, and to {self.names(other)}")
        return common

    def all(self, wanted: Iterable[str]) -> tuple[int, ...]:
        """Return what names mean, in ascending order; a :class:`PinError` where it is nothing."""
        names = (wanted,) if isinstance(wanted, str) else wanted
        return tuple(sorted({index for name in names for index in self._one(name)}))

    def matching(self, name: str) -> list[int]:
        """Return what has a name, in which ``*`` stands for anything."""
        if name in self._of or "*" not in name:
            return self._of.get(name, [])
        # Brackets are part of the names of tiles.
        pattern = name.replace("[", "[[]").replace("?", "[?]")
        matches = re.compile(fnmatch.translate(pattern)).match
        return [index for each in self._of if matches(each) for index in self._of[each]]

    def _one(self, name: str) -> list[int]:
        found = self.matching(name)
        if not found:
            near = near_matches(name, list(self._of)[:COMPARED])
            raise PinError(f"pins: there is no {self._what} {name}{near}")
        return found
