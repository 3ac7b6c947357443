"""A network, a machine and tilings become a problem: tasks, buffers, slices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from spmilp.errors import SpmilpError
from spmilp.formats import collector_paused
from spmilp.frontend.graph import Group, Network, Tensor
from spmilp.frontend.operators.geometry import Work
from spmilp.lowering.cost import cannot_run, cycles_by_kind, energy_by_kind
from spmilp.lowering.groups import PARTIAL_ITEM, Computation, overwritable_inputs, reduction_length
from spmilp.lowering.limits import FitTest, dma_limits
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.storage import (
    InitialGrids,
    Piece,
    SliceTable,
    Storage,
    Stored,
    Value,
    whole_below,
)
from spmilp.lowering.tiling import Grid, Interval, TileGrid, Tiling, box_name, tile_grid
from spmilp.machine.machine import Machine
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import BufferKind, Problem, Task, Tile
from spmilp.units import Box, BufferIdx, Cycles, Femtojoules, SliceIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTask:
    """One task of a group.

    Parameters
    ----------
    box
        The tile of the group's output.
    part
        Position in ``TileGrid.parts``.
    reads
        The box that it reads of each of the group's inputs; inputs of which it reads nothing are
        left out.
    """

    box: Box
    part: int
    reads: Mapping[str, Box]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledGroup:
    """A group and its tasks: tile by tile in row-major order, the parts of a tile in sequence.

    Parameters
    ----------
    length
        Of the reduction that ``grid.parts`` splits.
    waves
        Parts of the first axis that are computed one after another; see :class:`Tiling`.
    """

    group: Group
    grid: TileGrid
    length: int
    waves: int
    tasks: tuple[TileTask, ...]

    def tasks_of_wave(self, wave: int) -> Iterator[TileTask]:
        """Yield the tasks whose tiles begin in one part of the first axis."""
        if self.waves == 1:
            yield from self.tasks
            return
        length = self.grid.axes[0][-1][1]
        for task in self.tasks:
            if task.box[0][0] * self.waves // length == wave:
                yield task

    def reduction_of(self, task: TileTask) -> Interval | None:
        """Return the part of the reduction that a task covers; ``None`` for all of it."""
        return self.grid.parts[task.part] if len(self.grid.parts) > 1 else None

    def summed_before(self, task: TileTask) -> Interval:
        """Return the part of the reduction that the partial sum before a task covers."""
        return 0, self.grid.parts[task.part][0]

    def summed_after(self, task: TileTask) -> Interval:
        """Return the part of the reduction that the partial sum after a task covers."""
        return 0, self.grid.parts[task.part][1]

    def is_last(self, task: TileTask) -> bool:
        """Return whether a task finishes its tile."""
        return task.part == len(self.grid.parts) - 1


def tile_group(
    network: Network, group: Group, tiling: Tiling, go_on: Callable[[], None] = lambda: None
) -> TiledGroup:
    """Cut a group into tasks.

    Parameters
    ----------
    go_on
        Called with each task; what it raises passes on.

    Raises
    ------
    SpmilpError
        If the tiling does not fit the group's output.
    """
    length = reduction_length(network, group)
    try:
        grid = tile_grid(tiling, network.tensors[group.output].shape, length)
    except ValueError as error:
        raise SpmilpError(f"group {group.name}: {error}") from error
    computation = Computation(network, group, length)
    tasks = []
    for box in grid.boxes():
        for number, part in enumerate(grid.parts):
            go_on()
            reads, work = computation.reads(box, part), computation.work(box, part)
            tasks.append(TileTask(box=box, part=number, reads=reads, work=work))
    return TiledGroup(group=group, grid=grid, length=length, waves=tiling.waves, tasks=tuple(tasks))


MOST_TASKS_KEPT = 400_000


class TiledGroups:
    """The groups of one network, cut as asked; what was cut before is not cut again.

    A search for tile sizes changes few groups at a time. When too many tasks are kept, all are
    forgotten.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._known: dict[tuple[int, Tiling], TiledGroup] = {}
        self._kept = 0

    def of(
        self, group: Group, tiling: Tiling, go_on: Callable[[], None] = lambda: None
    ) -> TiledGroup:
        """Return :func:`tile_group` of a group."""
        key = group.index, tiling
        if key not in self._known:
            found = tile_group(self._network, group, tiling, go_on)
            self._kept += len(found.tasks)
            if self._kept > MOST_TASKS_KEPT:
                self._known, self._kept = {}, len(found.tasks)
            self._known[key] = found
        return self._known[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """Cycles and energy of some work on each kind of core."""

    cycles: tuple[Cycles | None, ...]
    energy: tuple[Femtojoules | None, ...]


class TaskMaker:
    """Makes the tasks of one group after another."""

    def __init__(
        self, network: Network, machine: Machine, storage: Storage, slices: SliceTable
    ) -> None:
        self._network = network
        self._kinds = machine.kinds
        self._storage = storage
        self._slices = slices

    def tasks(self, group: TiledGroup, wave: int, first: int) -> Iterator[Task]:
        """Yield the tasks of one wave of a group, numbered from ``first``.

        Raises
        ------
        SpmilpError
            If no kind of core can run the group.
        """
        overwritable = self._overwritable(group)
        costs: dict[Work, _Cost] = {}
        for number, task in enumerate(group.tasks_of_wave(wave), start=first):
            # Tiles of one group have few different sizes.
            cost = costs.get(task.work)
            if cost is None:
                cost = costs[task.work] = self._cost(group, task.work)
            yield self._task(group, task, number, overwritable, cost)

    def _task(
        self,
        group: TiledGroup,
        task: TileTask,
        number: int,
        overwritable: frozenset[str],
        cost: _Cost,
    ) -> Task:
        part = group.reduction_of(task)
        result = self._result(group, task)
        written = {cell: result.first + k for k, cell, _ in result.grid.overlapping(task.box)}
        reads: list[SliceIdx] = []
        in_place: list[tuple[SliceIdx, BufferIdx]] = []
        for stored, box in self._operands(group, task):
            pieces = self._slices.covering(stored, box)
            reads += (piece.index for piece in pieces)
            adds_up = stored.value.reduction is not None
            if (adds_up and stored.value.item == result.value.item) or (
                stored.value.of in overwritable
            ):
                in_place += _pairs(pieces, written)
        name = box_name(group.group.name, task.box, self._shape(group))
        return Task(
            index=number,
            name=name if part is None else f"{name}/{part[0]}:{part[1]}",
            cycles=cost.cycles,
            reads=tuple(dict.fromkeys(reads)),
            writes=tuple(written.values()),
            in_place=tuple(in_place),
            energy=cost.energy,
            tile=Tile(of=group.group.name, box=task.box, reduction=part),
        )

    def _operands(self, group: TiledGroup, task: TileTask) -> Iterator[tuple[Stored, Box]]:
        """Yield what a task reads: its operands, then the partial sum before it."""
        for name, box in task.reads.items():
            yield self._storage.find(name), box
        if task.part > 0:
            yield self._storage.find(group.group.name, group.summed_before(task)), task.box

    def _result(self, group: TiledGroup, task: TileTask) -> Stored:
        if group.is_last(task):
            return self._storage.find(group.group.output)
        return self._storage.find(group.group.name, group.summed_after(task))

    def _overwritable(self, group: TiledGroup) -> frozenset[str]:
        """Return the operands that may share their bytes with the group's output."""
        tensors = self._network.tensors
        return frozenset(
            name
            for name in overwritable_inputs(self._network, group.group)
            if tensors[name].dtype == tensors[group.group.output].dtype
        )

    def _cost(self, group: TiledGroup, work: Work) -> _Cost:
        cycles = cycles_by_kind(group.group, work, self._kinds)
        if all(count is None for count in cycles):
            raise cannot_run(group.group, work.dtype, self._kinds)
        return _Cost(cycles=cycles, energy=energy_by_kind(group.group, work, self._kinds))

    def _shape(self, group: TiledGroup) -> tuple[int, ...]:
        return self._network.tensors[group.group.output].shape


def _pairs(
    pieces: Sequence[Piece], written: dict[Box, BufferIdx]
) -> Iterator[tuple[SliceIdx, BufferIdx]]:
    """Yield the whole buffers read that are the same boxes as buffers written."""
    for piece in pieces:
        if piece.whole is not None and piece.whole in written:
            yield piece.index, written[piece.whole]


@collector_paused()
def lower(
    network: Network,
    machine: Machine,
    tilings: Mapping[int, Tiling],
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    sources: tuple[tuple[str, str], ...] = (),
    go_on: Callable[[], None] = lambda: None,
    tiled: TiledGroups | None = None,
) -> Problem:
    """Lower a tiled network to a problem.

    Each output tile of a group is a task, or a chain of tasks that add up partial sums; the last of
    a chain applies what follows the anchor. Tasks come group by group, tile by tile in row-major
    order; where tilings say so, successive groups take turns in waves. No task needs scratch bytes:
    what a group computes between its operators is assumed to live in registers. A task has no
    cycles on a kind of core whose memories are too small for it, unless all are.

    Parameters
    ----------
    tilings
        One for each group, by its index.
    sources
        ``(what, SHA-256)`` of the files that the problem comes from.
    go_on
        Called with each task that is made; what it raises ends the lowering.
    tiled
        Groups of the network that were cut before.

    Raises
    ------
    SpmilpError
        If the machine has no DRAM, a tiling does not fit its group, or no kind of core can run a
        group.
    """
    tiled = tiled or TiledGroups(network)
    groups = [tiled.of(one, tilings[one.index], go_on) for one in network.groups]
    limits = dma_limits(machine)
    storage = Storage(machine, limits)
    _store_what_is_given(network, machine, groups, storage)
    for group in groups:
        _store_what_is_computed(network, group, storage)
    slices = SliceTable(storage.buffers, limits)
    maker = TaskMaker(network, machine, storage, slices)
    tasks: list[Task] = []
    for group, wave in _in_waves(groups):
        for task in maker.tasks(group, wave, first=len(tasks)):
            go_on()
            tasks.append(task)
    fit_test = FitTest(machine, slices.slices, storage.buffers)
    return Problem(
        name=f"{network.name} on {machine.name}",
        machine=machine,
        tensors=tuple(storage.tensors),
        buffers=tuple(storage.buffers),
        slices=slices.slices,
        tasks=tuple(map(fit_test.only_where_it_fits, tasks)),
        objective=objective,
        sources=sources,
    )


def _in_waves(groups: list[TiledGroup]) -> Iterator[tuple[TiledGroup, int]]:
    """Yield groups with the wave that they compute, in order."""
    for waves, stretch in groupby(groups, lambda group: group.waves):
        members = list(stretch)
        yield from ((group, wave) for wave in range(waves) for group in members)


def _store_what_is_given(
    network: Network, machine: Machine, groups: list[TiledGroup], storage: Storage
) -> None:
    """Make the buffers of network inputs, then of constants in the order of their first use."""
    computed = {group.group.output for group in groups}
    reads: dict[str, dict[int, dict[Box, None]]] = {name: {} for name in network.inputs}
    for group in groups:
        for task in group.tasks:
            for name, box in task.reads.items():
                if name not in computed:
                    by_group = reads.setdefault(name, {})
                    by_group.setdefault(group.group.index, {})[box] = None
    grids = InitialGrids(rates=machine_rates(machine), whole_below=whole_below(machine))
    for name, by_group in reads.items():
        if not by_group:
            continue
        kind = BufferKind.INPUT if name in network.inputs else BufferKind.WEIGHT
        value = _value_of(network.tensors[name], kind)
        grids.add(storage, value, [list(boxes) for boxes in by_group.values()])


def _store_what_is_computed(network: Network, group: TiledGroup, storage: Storage) -> None:
    """Make the buffers of a group's partial sums and of its output."""
    tensor = network.tensors[group.group.output]
    is_output = tensor.name in network.outputs
    kind = BufferKind.OUTPUT if is_output else BufferKind.INTERMEDIATE
    value = _value_of(tensor, kind)
    grid = Grid(group.grid.axes)
    for part, (_, stop) in enumerate(group.grid.parts[:-1]):
        partial = Value(
            name=f"{group.group.name}.part{part}",
            of=group.group.name,
            kind=BufferKind.PARTIAL,
            shape=value.shape,
            item=PARTIAL_ITEM,
            reduction=(0, stop),
        )
        storage.add(partial, grid)
    storage.add(value, grid)


def _value_of(tensor: Tensor, kind: BufferKind) -> Value:
    return Value(
        name=tensor.name,
        of=tensor.name,
        kind=kind,
        shape=tensor.shape,
        item=np.dtype(tensor.dtype).itemsize,
    )
