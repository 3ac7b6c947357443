"""From a plan to a schedule."""

from collections.abc import Iterator
from math import lcm

import numpy as np

from spmilp.compiled import compiled
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE, Ints, Rows, inverted, numbers, rows_of
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.units import CoreIdx, KindIdx, MemoryIdx


def starts_of(plan: Plan) -> Ints:
    """Return the cycle at which each task, then each transfer starts."""
    tasks = (placement.start for placement in plan.placements)
    return numbers([*tasks, *(move.start for move in plan.transfers)])


def pools_of(machine: Machine) -> tuple[tuple[CoreIdx, ...], ...]:
    """Return the cores of each kind at each memory: to a task they are all the same."""
    pools: dict[tuple[KindIdx, MemoryIdx], list[CoreIdx]] = {}
    for core in machine.cores:
        pools.setdefault((core.kind, core.memory), []).append(core.index)
    return tuple(tuple(cores) for cores in pools.values())


def partial_order_of(problem: Problem, plan: Plan) -> PartialOrderSchedule:
    """Return the decisions of a valid plan."""
    reads = rows_of(
        [
            *(placement.reads for placement in plan.placements),
            *((move.source,) for move in plan.transfers),
        ]
    )
    fills = rows_of([*_filled_by_tasks(plan), *(move.destinations for move in plan.transfers)])
    activities = len(plan.placements) + len(plan.transfers)
    residencies = len(plan.residencies)
    before = rows_of([*(task.after for task in problem.tasks), *((),) * len(plan.transfers)])
    filler = np.full(residencies, NONE, np.int64)
    filler[fills.items] = np.repeat(np.arange(activities), np.diff(fills.begin))
    demands, amounts = _demands(problem, plan)
    tasks = len(plan.placements)
    memory = numbers(stay.memory for stay in plan.residencies)
    offset = numbers(stay.offset for stay in plan.residencies)
    size = numbers(stay.bytes for stay in plan.residencies)
    overwrites, overwritten_by = in_place_pairs(reads, fills, memory, offset, size)
    return PartialOrderSchedule(
        cycles=numbers(
            [
                *(placement.end - placement.start for placement in plan.placements),
                *(move.end - move.start for move in plan.transfers),
            ]
        ),
        demands=demands,
        amounts=amounts,
        capacity=_capacity(problem),
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
        slice=numbers(NONE if stay.slice is None else stay.slice for stay in plan.residencies),
        moved_slice=numbers([*[NONE] * tasks, *(move.slice for move in plan.transfers)]),
        overwrites=overwrites,
        overwritten_by=overwritten_by,
    )


def _filled_by_tasks(plan: Plan) -> Iterator[tuple[int, ...]]:
    for placement in plan.placements:
        scratch = () if placement.scratch is None else (placement.scratch,)
        yield (*placement.writes, *scratch)


def _lasting(problem: Problem, plan: Plan) -> Iterator[bool]:
    """Say of each residency whether it is an output, or lies in a DRAM from the start, to the end.

    A copy that happens to be there at the end need not stay.
    """
    last = max((p.end for p in plan.placements), default=0)
    last = max(last, max((move.end for move in plan.transfers), default=0))
    for stay in plan.residencies:
        if stay.slice is None or stay.end < last:
            yield False
            continue
        buffer = problem.buffers[problem.slices[stay.slice].buffer]
        is_output = stay.slice == buffer.index and buffer.ends_in == stay.memory
        is_initial = stay.filled_by_task is None and stay.filled_by_transfer is None
        yield is_output or (is_initial and buffer.place is not None)


def _scale(problem: Problem) -> int:
    machine = problem.machine
    rates = [engine.rate for engine in machine.engines] + [link.rate for link in machine.links]
    return lcm(*(rate.denominator for rate in rates))


def _capacity(problem: Problem) -> Ints:
    machine, scale = problem.machine, _scale(problem)
    return numbers(
        [
            *(len(cores) for cores in pools_of(machine)),
            *(engine.channels for engine in machine.engines),
            *(int(link.rate * scale) for link in machine.links),
        ]
    )


def _demands(problem: Problem, plan: Plan) -> tuple[Rows, Ints]:
    machine, scale = problem.machine, _scale(problem)
    pools = pools_of(machine)
    pool_of = {core: pool for pool, cores in enumerate(pools) for core in cores}
    engines = len(pools)
    links = engines + len(machine.engines)
    which: list[tuple[int, ...]] = [(pool_of[placement.core],) for placement in plan.placements]
    amounts = [1] * len(which)
    of_engines = [int(engine.rate * scale) for engine in machine.engines]
    of_links = [int(link.rate * scale) for link in machine.links]

    def residency(move: Transfer) -> int:
        return min([of_engines[move.engine], *(of_links[link] for link in move.route)])

    for move in plan.transfers:
        which.append((engines + move.engine, *(links + link for link in move.route)))
        amounts += [1, *[residency(move)] * len(move.route)]
    return rows_of(which), numbers(amounts)


def in_place_pairs(
    reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints
) -> tuple[Ints, Ints]:
    """Return for each residency the one it takes over from, and the one it hands over to.

    A task that writes over an operand is the only case in which a valid plan lets two share bytes.
    """
    overwrites, overwritten_by = (np.full(memory.size, NONE) for _ in range(2))
    _find(reads, fills, memory, offset, size, overwrites, overwritten_by)
    return overwrites, overwritten_by


@compiled
def _find(
    reads: Rows,
    fills: Rows,
    memory: Ints,
    offset: Ints,
    size: Ints,
    overwrites: Ints,
    overwritten_by: Ints,
) -> None:
    for act in range(reads.begin.size - 1):
        for i in range(reads.begin[act], reads.begin[act + 1]):
            old = reads.items[i]
            for j in range(fills.begin[act], fills.begin[act + 1]):
                new = fills.items[j]
                below = offset[old] < offset[new] + size[new]
                above = offset[new] < offset[old] + size[old]
                if memory[old] == memory[new] and below and above:
                    overwritten_by[old], overwrites[new] = new, old
