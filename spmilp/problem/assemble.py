"""From data and tasks by names to a problem: indices, slices, places in tensors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from spmilp.errors import ArgumentError
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.problem.named import ITEMS, Data, Home, NamedTask, View
from spmilp.problem.problem import (
    Buffer,
    BufferKind,
    DramTensor,
    Place,
    Slice,
    Task,
    whole_slice,
)
from spmilp.units import Extents, SliceIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Everything that a problem is made from, in the order in which it was added.

    Parameters
    ----------
    starts, ends
        By the name of the data: where it lies at cycle 0, and where it must lie at the end.
    """

    machine: Machine
    data: Mapping[str, Data]
    starts: Mapping[str, Home]
    ends: Mapping[str, Home]
    tasks: Mapping[str, NamedTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The tables of a problem."""

    tensors: tuple[DramTensor, ...]
    buffers: tuple[Buffer, ...]
    slices: tuple[Slice, ...]
    tasks: tuple[Task, ...]


def assemble(given: Described) -> Assembled:
    """Return the tables of a problem.

    Raises
    ------
    ValueError
        If tiles of one tensor differ in what they say of it, or overlap.
    """
    tensors = _tensors(given)
    numbers = {name: index for index, name in enumerate(given.data)}
    buffers = tuple(_buffer(given, name, index, tensors) for name, index in numbers.items())
    slices = _Slices(buffers, numbers)
    positions = {name: index for index, name in enumerate(given.tasks)}
    tasks = tuple(
        Task(
            index=positions[task.name],
            name=task.name,
            cycles=task.cycles,
            reads=tuple(slices.number(view) for view in task.reads),
            writes=tuple(numbers[data.name] for data in task.writes),
            scratch=task.scratch,
            in_place=tuple(
                (slices.number(view), numbers[data.name]) for view, data in task.in_place
            ),
            after=tuple(positions[name] for name in dict.fromkeys(task.after)),
            energy=task.energy,
        )
        for task in given.tasks.values()
    )
    return Assembled(
        tensors=tuple(tensors.values()), buffers=buffers, slices=tuple(slices.all), tasks=tasks
    )


def _tensors(given: Described) -> dict[str, DramTensor]:
    """Return the tensors of all that starts or ends in a DRAM, by name."""
    found: dict[str, DramTensor] = {}
    tiles: dict[str, list[tuple[str, Extents, Extents]]] = {}
    for name, home in (*given.starts.items(), *given.ends.items()):
        if given.machine.memories[home.memory].kind is not MemoryKind.DRAM:
            continue
        tensor = DramTensor(
            index=len(found),
            name=home.tensor,
            kind=home.kind,
            memory=home.memory,
            shape=home.shape,
            item=ITEMS[given.data[name].dtype],
        )
        known = found.setdefault(home.tensor, tensor)
        for what in ("kind", "memory", "shape", "item"):
            one, other = getattr(known, what), getattr(tensor, what)
            if one != other:
                raise ArgumentError(f"{name}: {what} {other} in {home.tensor}, which has {one}")
        tiles.setdefault(home.tensor, []).append((name, home.start, given.data[name].shape))
    for tensor_name, boxes in tiles.items():
        _do_not_overlap(tensor_name, boxes)
    return found


def _do_not_overlap(tensor: str, boxes: Iterable[tuple[str, Extents, Extents]]) -> None:
    for (one, start, extent), (other, other_start, other_extent) in combinations(boxes, 2):
        sides = zip(start, extent, other_start, other_extent, strict=True)
        if all(a < b + n and b < a + m for a, m, b, n in sides):
            raise ArgumentError(f"{one} and {other} overlap in the tensor {tensor}")


def _buffer(given: Described, name: str, index: int, tensors: Mapping[str, DramTensor]) -> Buffer:
    data, start, end = given.data[name], given.starts.get(name), given.ends.get(name)
    partial = any(task.partial and data in task.writes for task in given.tasks.values())
    kind = BufferKind.PARTIAL if partial else BufferKind.INTERMEDIATE
    home, place = start or end, None
    if home is not None:
        kind = home.kind
        if given.machine.memories[home.memory].kind is MemoryKind.DRAM:
            place = Place(tensors[home.tensor].index, home.start)
    return Buffer(
        index=index,
        name=name,
        kind=kind,
        shape=data.shape,
        item=ITEMS[data.dtype],
        starts_in=None if start is None else start.memory,
        ends_in=None if end is None else end.memory,
        place=place,
    )


class _Slices:
    """The slices of a problem: whole buffers first, then each part that is read, once."""

    def __init__(self, buffers: Sequence[Buffer], numbers: Mapping[str, int]) -> None:
        self.all = list(map(whole_slice, buffers))
        self._buffers = buffers
        self._numbers = numbers
        self._parts: dict[tuple[int, Extents, Extents], SliceIdx] = {
            (each.buffer, each.start, each.extent): each.index for each in self.all
        }

    def number(self, view: View) -> SliceIdx:
        """Return the number of a part; a new one is added."""
        buffer = self._buffers[self._numbers[view.data.name]]
        key = (buffer.index, view.start, view.extent)
        if key not in self._parts:
            self._parts[key] = len(self.all)
            self.all.append(
                Slice(
                    index=len(self.all),
                    buffer=buffer.index,
                    start=view.start,
                    extent=view.extent,
                    bytes=view.bytes,
                )
            )
        return self._parts[key]
