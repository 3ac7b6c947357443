"""A network, a machine and tilings become a problem: tasks, buffers, slices."""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

import numpy as np

from spmilp.frontend.graph import Network, Tensor
from spmilp.lowering.grid import Grid
from spmilp.lowering.groups import PARTIAL_ITEM
from spmilp.lowering.limits import FitTest, dma_limits
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.slices import SliceTable
from spmilp.lowering.storage import InitialGrids, Storage, Value, whole_below
from spmilp.lowering.tasks import TaskMaker, TiledGroup, TiledGroups
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.documents import collector_paused
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import BufferKind, Problem, Task
from spmilp.units import Box


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
