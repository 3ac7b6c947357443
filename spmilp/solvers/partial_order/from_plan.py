"""From a plan to a partial-order schedule."""

from collections.abc import Iterator
from math import lcm

import numpy as np

from spmilp.compiled import compiled
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Placement, Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE, Ints, Rows, inverted, numbers, rows_of
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.units import CoreIdx, KindIdx, MemoryIdx, ResidencyIdx


def starts_of(plan: Plan) -> Ints:
    """Return the cycle at which each task, then each transfer starts."""
    return numbers(one.start for one in _activities(plan))


def _activities(plan: Plan) -> list[Placement | Transfer]:
    return [*plan.placements, *plan.transfers]


def pools_of(machine: Machine) -> tuple[tuple[CoreIdx, ...], ...]:
    """Return the cores of each kind at each memory: to a task they are all the same."""
    pools: dict[tuple[KindIdx, MemoryIdx], list[CoreIdx]] = {}
    for core in machine.cores:
        pools.setdefault((core.kind, core.memory), []).append(core.index)
    return tuple(tuple(cores) for cores in pools.values())


def partial_order_of(problem: Problem, plan: Plan) -> PartialOrderSchedule:
    """Return the decisions of a valid plan."""
    placements, transfers = plan.placements, plan.transfers
    activities, residencies = len(placements) + len(transfers), len(plan.residencies)
    reads = rows_of([*(one.reads for one in placements), *((one.source,) for one in transfers)])
    fills = rows_of([*map(_filled_by, placements), *(one.destinations for one in transfers)])
    before = rows_of([*(task.after for task in problem.tasks), *((),) * len(transfers)])
    filler = np.full(residencies, NONE, np.int64)
    filler[fills.items] = np.repeat(np.arange(activities), np.diff(fills.begin))
    memory, offset, size = (
        numbers(getattr(one, name) for one in plan.residencies)
        for name in ("memory", "offset", "bytes")
    )
    overwrites, overwritten_by = _in_place(reads, fills, memory, offset, size)
    demands, amounts, capacity = _resources(problem, plan)
    return PartialOrderSchedule(
        cycles=numbers(one.end - one.start for one in _activities(plan)),
        demands=demands,
        amounts=amounts,
        capacity=capacity,
        reads=reads,
        fills=fills,
        before=before,
        after=inverted(before, activities),
        readers=inverted(reads, residencies),
        filler=filler,
        memory=memory,
        offset=offset,
        bytes=size,
        lasting=numbers(_lasting(problem, plan)),
        slice=numbers(NONE if one.slice is None else one.slice for one in plan.residencies),
        moved_slice=numbers([*[NONE] * len(placements), *(one.slice for one in transfers)]),
        overwrites=overwrites,
        overwritten_by=overwritten_by,
    )


def _filled_by(placement: Placement) -> tuple[ResidencyIdx, ...]:
    scratch = () if placement.scratch is None else (placement.scratch,)
    return (*placement.writes, *scratch)


def _lasting(problem: Problem, plan: Plan) -> Iterator[bool]:
    """Say of each residency whether it is an output, or lies in a DRAM from the start, to the end.

    A copy that happens to be there at the end need not stay.
    """
    last = max((one.end for one in _activities(plan)), default=0)
    for residency in plan.residencies:
        if residency.slice is None or residency.end < last:
            yield False
            continue
        buffer = problem.buffers[problem.slices[residency.slice].buffer]
        is_output = residency.slice == buffer.index and buffer.ends_in == residency.memory
        is_initial = residency.filled_by_task is None and residency.filled_by_transfer is None
        yield is_output or (is_initial and buffer.place is not None)


def _resources(problem: Problem, plan: Plan) -> tuple[Rows, Ints, Ints]:
    """Return what each activity holds, how much of it, and the capacity of each resource."""
    machine = problem.machine
    rates = [*(engine.rate for engine in machine.engines), *(link.rate for link in machine.links)]
    scale = lcm(*(rate.denominator for rate in rates))
    pools = pools_of(machine)
    pool_of = {core: pool for pool, cores in enumerate(pools) for core in cores}
    engines, links = len(pools), len(pools) + len(machine.engines)
    demands: list[tuple[int, ...]] = [(pool_of[one.core],) for one in plan.placements]
    amounts = [1] * len(demands)
    for move in plan.transfers:
        demands.append((engines + move.engine, *(links + link for link in move.route)))
        held = machine.engines[move.engine].rate
        held = min([held, *(machine.links[link].rate for link in move.route)])
        amounts += [1, *[int(held * scale)] * len(move.route)]
    capacity = [
        *(len(cores) for cores in pools),
        *(engine.channels for engine in machine.engines),
        *(int(link.rate * scale) for link in machine.links),
    ]
    return rows_of(demands), numbers(amounts), numbers(capacity)


@compiled
def _in_place(
    reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints
) -> tuple[Ints, Ints]:
    """Return the in-place predecessor and successor of each residency.

    A task that writes over an operand is the only case in which a valid plan lets two share bytes.
    """
    overwrites, overwritten_by = np.full(size.size, NONE), np.full(size.size, NONE)
    for act in range(reads.begin.size - 1):
        for i in range(reads.begin[act], reads.begin[act + 1]):
            old = reads.items[i]
            for j in range(fills.begin[act], fills.begin[act + 1]):
                new = fills.items[j]
                below = offset[old] < offset[new] + size[new]
                above = offset[new] < offset[old] + size[old]
                if memory[old] == memory[new] and below and above:
                    overwritten_by[old], overwrites[new] = new, old
    return overwrites, overwritten_by
