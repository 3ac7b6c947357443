"""A network, a machine and tilings become a problem: tasks, buffers, slices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from spmilp.cached import cached
from spmilp.errors import SpmilpError
from spmilp.formats import collector_paused
from spmilp.frontend.graph import Group, Network, Tensor
from spmilp.frontend.operators.geometry import Work
from spmilp.frontend.regions import overwritable_inputs
from spmilp.frontend.workspace import PARTIAL_ITEM, notes_of, stated_bytes
from spmilp.lowering.cost import cannot_run, cycles_by_kind, energy_by_kind
from spmilp.lowering.groups import computation_of, reduction_length
from spmilp.lowering.limits import dma_limits, only_where_they_fit
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.storage import SliceTable, Storage, Value, initial_grid, whole_below
from spmilp.lowering.tiling import TileGrid, Tiling, box_name, tile_grid, whole_grid
from spmilp.machine.machine import CoreKind, Machine
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import BufferKind, Problem, Task, Tile
from spmilp.units import Box, BufferIdx, Cycles, Femtojoules, SliceIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTask:
    """One task of a group: a box of its output, and a position in ``TileGrid.parts``.

    Inputs of the group of which it reads nothing are missing in ``reads``.
    """

    box: Box
    part: int
    reads: Mapping[str, Box]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledGroup:
    """A group and its tasks: tile by tile in row-major order, the parts of a tile in sequence."""

    group: Group
    grid: TileGrid
    tasks: tuple[TileTask, ...]


MOST_TASKS_KEPT = 400_000
"""Tasks of tiled groups that are kept; with more all are forgotten, for memory's sake."""


@cached
def _known_groups(network: Network) -> dict[tuple[int, Tiling], TiledGroup]:
    """Return a place for what was cut: a search for tile sizes changes few groups at a time."""
    return {}


def tile_group(network: Network, group: Group, tiling: Tiling) -> TiledGroup:
    """Cut a group into tasks; what was cut before is not cut again.

    Raises an ``SpmilpError`` if the tiling does not fit the group's output.
    """
    known, key = _known_groups(network), (group.index, tiling)
    if key not in known:
        if sum(len(each.tasks) for each in known.values()) > MOST_TASKS_KEPT:
            known.clear()
        known[key] = _cut(network, group, tiling)
    return known[key]


def _cut(network: Network, group: Group, tiling: Tiling) -> TiledGroup:
    length = reduction_length(network, group)
    try:
        grid = tile_grid(tiling, network.tensors[group.output].shape, length)
    except ValueError as error:
        raise SpmilpError(f"group {group.name}: {error}") from error
    computation = computation_of(network, group)
    tasks = tuple(
        TileTask(
            box=box,
            part=number,
            reads=computation.reads(box, part),
            work=computation.work(box, part),
        )
        for box in grid.boxes()
        for number, part in enumerate(grid.parts)
    )
    return TiledGroup(group=group, grid=grid, tasks=tasks)


@collector_paused()
def lower(
    network: Network,
    machine: Machine,
    tilings: Mapping[int, Tiling],
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    sources: tuple[tuple[str, str], ...] = (),
    go_on: Callable[[], None] = lambda: None,
) -> Problem:
    """Lower a tiled network to a problem.

    Each output tile of a group is a task, or a chain of tasks that add up partial sums; the last of
    a chain applies what follows the anchor. Tasks come group by group, tile by tile in row-major
    order. The scratch bytes of a task are the workspace of its kernels. A task has no cycles on a
    kind of core whose memories are too small for it, unless all are.

    Parameters
    ----------
    tilings
        One for each group, by its index.
    sources
        ``(what, SHA-256)`` of the files that the problem comes from.
    go_on
        Called with each group and task; what it raises ends the lowering.

    Raises a ``SpmilpError`` if the machine has no DRAM, a tiling does not fit its group, or no kind
    of core can run a group.
    """
    groups = []
    for one in network.groups:
        go_on()
        groups.append(tile_group(network, one, tilings[one.index]))
    limits = dma_limits(machine)
    storage = Storage(machine, limits, network.states)
    _store_what_is_given(network, machine, groups, storage)
    for group in groups:
        _store_what_is_computed(network, group, storage)
    slices = SliceTable(storage.buffers, limits)
    tasks: list[Task] = []
    for group in groups:
        for task in _tasks(network, machine.kinds, storage, slices, group, len(tasks)):
            go_on()
            tasks.append(task)
    return Problem(
        name=f"{network.name} on {machine.name}",
        machine=machine,
        tensors=tuple(storage.tensors),
        buffers=tuple(storage.buffers),
        slices=tuple(slices.slices),
        tasks=tuple(only_where_they_fit(tasks, machine, slices.slices, storage.buffers)),
        objective=objective,
        sources=sources,
    )


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
    small, rates = whole_below(machine), machine_rates(machine)
    grid_of = {group.group.output: group.grid for group in groups}
    for name, by_group in reads.items():
        if by_group:
            tensor = network.tensors[name]
            kind = BufferKind.INPUT if name in network.inputs else BufferKind.WEIGHT
            value = _value_of(tensor, kind)
            if name in network.states:
                # It is read as the inference before has left it.
                left = grid_of[network.states[name]]
                storage.add(value, left, read_whole=tensor.bytes <= small)
            elif tensor.bytes <= small:
                storage.add(value, whole_grid(value.shape), read_whole=True)
            else:
                boxes = [list(some) for some in by_group.values()]
                storage.add(value, initial_grid(storage, rates, value, boxes))


def _store_what_is_computed(network: Network, group: TiledGroup, storage: Storage) -> None:
    """Make the buffers of a group's partial sums and of its output."""
    tensor = network.tensors[group.group.output]
    is_output = tensor.name in network.outputs
    kind = BufferKind.OUTPUT if is_output else BufferKind.INTERMEDIATE
    for part, (_, stop) in enumerate(group.grid.parts[:-1]):
        partial = Value(
            name=f"{group.group.name}.part{part}",
            of=group.group.name,
            kind=BufferKind.PARTIAL,
            shape=tensor.shape,
            item=PARTIAL_ITEM,
            reduction=(0, stop),
        )
        storage.add(partial, group.grid)
    storage.add(_value_of(tensor, kind), group.grid)


def _value_of(tensor: Tensor, kind: BufferKind) -> Value:
    name, item = tensor.name, tensor.dtype.itemsize
    return Value(name=name, of=name, kind=kind, shape=tensor.shape, item=item)


def _tasks(
    network: Network,
    kinds: Sequence[CoreKind],
    storage: Storage,
    slices: SliceTable,
    tiled: TiledGroup,
    first: int,
) -> Iterator[Task]:
    """Yield the tasks of a group, numbered from ``first``."""
    group, parts = tiled.group, tiled.grid.parts
    shape, find = network.tensors[group.output].shape, storage.find
    overwritable = overwritable_inputs(network, group)
    computation = computation_of(network, group)

    @cache
    def cost(work: Work) -> tuple[tuple[Cycles | None, ...], tuple[Femtojoules | None, ...]]:
        """Return the cycles and the energy of some work on each kind of core."""
        cycles = cycles_by_kind(group, work, kinds)
        if all(count is None for count in cycles):
            raise cannot_run(group, work.dtype, kinds)
        return cycles, energy_by_kind(group, work, kinds)

    for number, task in enumerate(tiled.tasks, start=first):
        cycles, energy = cost(task.work)
        start, stop = parts[task.part]
        reduction = None if len(parts) == 1 else (start, stop)
        is_last = task.part == len(parts) - 1
        result = find(group.output) if is_last else find(group.name, (0, stop))
        written = {cell: result.first + k for k, cell, _ in result.grid.overlapping(task.box)}
        operands = [(find(name), box) for name, box in task.reads.items()]
        if task.part > 0:
            operands.append((find(group.name, (0, start)), task.box))
        reads: dict[SliceIdx, None] = {}
        in_place: list[tuple[SliceIdx, BufferIdx]] = []
        for stored, box in operands:
            pieces = slices.covering(stored, box)
            reads |= dict.fromkeys(piece.index for piece in pieces)
            adds_up = stored.value.reduction is not None and stored.value.item == result.value.item
            if adds_up or stored.value.of in overwritable:
                # Whole buffers that are the same boxes as buffers written.
                in_place += (
                    (piece.index, written[piece.whole])
                    for piece in pieces
                    if piece.whole is not None and piece.whole in written
                )
        name = box_name(group.name, task.box, shape)
        read = (slices.slices[each] for each in reads)
        notes = notes_of(read, task.reads, storage.buffers, len(written), in_place)
        needed = computation.workspace(task.box, parts[task.part], notes).bytes
        able = (kind for kind, count in zip(kinds, cycles, strict=True) if count is not None)
        yield Task(
            index=number,
            name=name if reduction is None else f"{name}/{start}:{stop}",
            cycles=cycles,
            reads=tuple(reads),
            writes=tuple(written.values()),
            scratch=stated_bytes(needed, group.operators[group.anchor].kind, able),
            in_place=tuple(in_place),
            energy=energy,
            tile=Tile(of=group.name, box=task.box, reduction=reduction),
        )
