"""Pins by names, as people write them in a file, and what they are as numbers of a problem."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from msgspec import Meta

from spmilp.errors import FileError, PinError
from spmilp.files import read_bytes
from spmilp.formats import FileRow, converted, fields_of, listed, near_matches
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import BufferPin, Pins, TaskPin
from spmilp.problem.problem import Problem
from spmilp.units import Amount, Count

T = TypeVar("T")

MOST_BYTES = 1 << 20
"""Of a file of pins."""

COMPARED = 2000
"""Names among which one is looked for that was meant."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=300)]
Names: TypeAlias = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=1000)]
"""In a file one name or several; ``*`` in one stands for anything."""

ONE_OR_MORE = ("task", "cores", "buffer", "memory", "group", "forbid_cores")


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
    forbid_cores: tuple[Name, ...] = ()
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

    Raises
    ------
    FileError
        If it is no YAML or breaks the format; the message names the field.
    """
    if given is None:
        return NO_NAMED_PINS
    if isinstance(given, NamedPins):
        return given
    origin, content = "pins", given
    if not isinstance(given, Mapping):
        origin, data = str(given), read_bytes(given)
        if len(data) > MOST_BYTES:
            raise FileError(f"{origin}: {len(data):,} B, expected at most {MOST_BYTES:,} B")
        content = fields_of(data, origin, "the fields of pins (tasks, buffers, tiles, ...)")
    try:
        return converted(listed(content, ONE_OR_MORE), NamedPins)
    except ValueError as error:
        raise FileError(f"{origin}: {error}") from error


def with_pins(problem: Problem, named: NamedPins) -> Problem:
    """Return a problem with pins besides those that it has; those of tiles are left out.

    Where several rows speak of one task or buffer, all of them hold.

    Raises
    ------
    PinError
        If a name is not known, or pins contradict each other or the problem.
    """
    if not (named.forbid_cores or named.tasks or named.buffers):
        refuse_contradictions(problem)
        return problem
    pins = _Resolver(problem).pins(named)
    try:
        pinned = replace(problem, pins=pins)
    except ValueError as error:
        raise PinError(f"pins: {error}") from error
    refuse_contradictions(pinned)
    return pinned


def refuse_unknown_names(
    named: NamedPins, machine: Machine, groups: Iterable[str], tensors: Iterable[str]
) -> None:
    """Raise an error for what is wrong whatever the tiles, before any are looked for.

    Parameters
    ----------
    groups, tensors
        Their names; those of tiles, with brackets, and of partial sums are not known yet.

    Raises
    ------
    PinError
        If a name is not known, or all cores are forbidden that a row allows.
    """
    cores, memories = _cores_of(machine), _memories_of(machine)
    forbidden = cores.all(named.forbid_cores)
    if len(forbidden) == len(machine.cores):
        raise PinError(f"pins: all {len(forbidden)} cores are forbidden")
    by_name = Known("group", [(name, "") for name in groups])
    for row in named.tasks:
        by_name.all(filter(_is_whole, row.task))
        able = cores.all(row.cores or ())
        if able and set(able) <= set(forbidden):
            shown = cores.names(able)
            raise PinError(
                f"pins: task {', '.join(row.task)} is pinned to {shown}, and {shown} is forbidden"
            )
    of_tensors = Known("tensor", [(name, "") for name in tensors])
    for place in named.buffers:
        memories.all(place.memory)
        of_tensors.all(filter(_is_whole, place.buffer))


def _is_whole(name: str) -> bool:
    """Say whether a name is that of a whole group or tensor."""
    return not {"*", "["} & set(name) and ".part" not in name


def _cores_of(machine: Machine) -> "Known":
    return Known("core", [(core.name, "") for core in machine.cores])


def _memories_of(machine: Machine) -> "Known":
    able = (None if m.kind is MemoryKind.DRAM else m.name for m in machine.memories)
    return Known("scratchpad or shared memory", [(name or "", "") for name in able])


class _Resolver:
    def __init__(self, problem: Problem) -> None:
        machine = problem.machine
        self._problem = problem
        self._cores = _cores_of(machine)
        self._memories = _memories_of(machine)
        self._tasks = Known(
            "task or group", [(t.name, t.tile.of if t.tile else "") for t in problem.tasks]
        )
        self._buffers = Known(
            "buffer or tensor", [(b.name, b.tile.of if b.tile else "") for b in problem.buffers]
        )

    def pins(self, named: NamedPins) -> Pins:
        known = self._problem.pins
        tasks = {pin.task: pin for pin in known.tasks}
        for row in named.tasks:
            for pin in self._task_pins(row):
                old = tasks.get(pin.task)
                tasks[pin.task] = pin if old is None else self._both_tasks(old, pin)
        buffers = {pin.buffer: pin for pin in known.buffers}
        for place in named.buffers:
            for one in self._buffer_pins(place):
                before = buffers.get(one.buffer)
                buffers[one.buffer] = one if before is None else self._both_buffers(before, one)
        forbidden = {*known.forbidden, *self._cores.all(named.forbid_cores)}
        return Pins(
            forbidden=tuple(sorted(forbidden)),
            tasks=tuple(tasks[index] for index in sorted(tasks)),
            buffers=tuple(buffers[index] for index in sorted(buffers)),
        )

    def _task_pins(self, row: TaskRow) -> Iterator[TaskPin]:
        cores = self._cores.all(row.cores or ())
        for task in self._tasks.all(row.task):
            yield TaskPin(
                task=task, cores=cores, not_before=row.not_before, not_after=row.not_after
            )

    def _buffer_pins(self, row: BufferRow) -> Iterator[BufferPin]:
        memories = self._memories.all(row.memory)
        for buffer in self._buffers.all(row.buffer):
            yield BufferPin(
                buffer=buffer, memories=memories, address=row.address, resident=row.resident
            )

    def _both_tasks(self, one: TaskPin, other: TaskPin) -> TaskPin:
        who = f"task {self._problem.tasks[one.task].name}"
        cores = self._both(f"{who} is pinned to", self._cores, one.cores, other.cores)
        ends = [pin.not_after for pin in (one, other) if pin.not_after is not None]
        start, end = max(one.not_before, other.not_before), min(ends, default=None)
        if end is not None and start >= end:
            raise PinError(f"pins: {who}: not_before {start} >= not_after {end}")
        return TaskPin(task=one.task, cores=cores, not_before=start, not_after=end)

    def _both_buffers(self, one: BufferPin, other: BufferPin) -> BufferPin:
        who = f"buffer {self._problem.buffers[one.buffer].name} is pinned to"
        if None not in (one.address, other.address) and one.address != other.address:
            raise PinError(f"pins: {who} address {one.address} and to address {other.address}")
        return BufferPin(
            buffer=one.buffer,
            memories=self._both(who, self._memories, one.memories, other.memories),
            address=other.address if one.address is None else one.address,
            resident=one.resident or other.resident,
        )

    def _both(
        self, who: str, known: "Known", one: tuple[int, ...], other: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Return what two lists of cores or memories have in common; an empty one is any."""
        if not one or not other:
            return one or other
        common = tuple(index for index in one if index in other)
        if not common:
            raise PinError(f"pins: {who} {known.names(one)}, and to {known.names(other)}")
        return common


class Known:
    """Things that have names, and names of what they belong to.

    Parameters
    ----------
    what
        They are called, for messages.
    names
        Two for each: its own, and that of its group or tensor; empty ones are nobody's.
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

    def all(self, wanted: Iterable[str]) -> tuple[int, ...]:
        """Return what is meant, in ascending order.

        Raises
        ------
        PinError
            If a name is nobody's.
        """
        return tuple(sorted({index for name in wanted for index in self._one(name)}))

    def _one(self, name: str) -> Iterable[int]:
        if name in self._of:
            return self._of[name]
        found: list[int] = []
        if "*" in name:
            # Brackets are part of the names of tiles.
            pattern = name.replace("[", "[[]").replace("?", "[?]")
            matches = re.compile(fnmatch.translate(pattern)).match
            found = [index for each in self._of if matches(each) for index in self._of[each]]
        if not found:
            near = near_matches(name, list(self._of)[:COMPARED])
            raise PinError(f"pins: there is no {self._what} {name}{near}")
        return found
