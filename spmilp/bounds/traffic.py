"""Traffic bounds: what must cross a DRAM's links takes time."""

from collections.abc import Iterable
from fractions import Fraction

from spmilp.bounds.critical_path import Paths
from spmilp.bounds.distances import Distances
from spmilp.bounds.movement import Movement, cycles_at
from spmilp.problem.loads import Share, least_loads
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, MemoryIdx


def traffic_bound(problem: Problem, movement: Movement, paths: Paths) -> Cycles:
    """Return the best bound from loads and stores that no plan can avoid.

    What :func:`~spmilp.problem.loads.least_loads` says leaves a DRAM by transfers, each of which
    holds its rate on a link out of the DRAM for all its cycles; the product is at least
    ``least_load_use``. What tasks with tails of at least q read must be out q cycles before the
    end, so for each q

        makespan >= ceil(sum of uses / rate of a cut that all transfers out cross) + q.

    Both presume that no core works in that DRAM itself. Stores likewise, after the head and the
    cycles of the task that writes them (Jackson's one machine bound, Carlier, EJOR 11, 1982). Loads
    and stores together cross a cut of both (a port that serves one direction at a time), where all
    their uses add up.
    """
    bounds = [0]
    for dram in problem.machine.drams:
        loads = _loads(problem, movement, paths, dram.index)
        stores = _stores(problem, movement, paths, dram.index)
        bounds.append(_one_machine(loads, movement.rate_out(dram.index)))
        bounds.append(_one_machine(stores, movement.rate_in(dram.index)))
        total = sum((use for use, _ in loads + stores), Fraction(0))
        bounds.append(_one_machine([(total, 0)], movement.rate_both_ways(dram.index)))
    return max(bounds)


def _loads(
    problem: Problem, movement: Movement, paths: Paths, dram: MemoryIdx
) -> list[tuple[Fraction, Cycles]]:
    """Return use and tail of what leaves a DRAM: the longest tail if all of it is for each reader.

    Where the parts may come one by one, in any order, the shortest tail is safe.
    """
    distances = Distances(problem)
    found = []
    for load in least_loads(problem):
        if load.buffer.starts_in == dram and distances.starts_in_dram(load.buffer.index):
            tails = [paths.tail[task] for task in load.readers]
            use = movement.least_load_use(dram, load)
            found.append((use, min(tails) if load.share is Share.REST else max(tails)))
    return found


def _stores(
    problem: Problem, movement: Movement, paths: Paths, dram: MemoryIdx
) -> list[tuple[Fraction, Cycles]]:
    """Return use and release of each buffer that a task writes and that must end in a DRAM."""
    distances = Distances(problem)
    return [
        (
            movement.least_store_use(dram, problem.buffers[buffer].bytes),
            paths.head[task.index] + paths.cycles[task.index],
        )
        for task in problem.tasks
        for buffer in task.writes
        if problem.buffers[buffer].ends_in == dram and distances.ends_in_dram(buffer)
    ]


def _one_machine(jobs: Iterable[tuple[Fraction, Cycles]], rate: Fraction) -> Cycles:
    """Return the best bound over the jobs whose head (or tail) is at least that of each job."""
    best = 0
    total = Fraction(0)
    if rate == 0:
        return best
    for use, apart in sorted(jobs, key=lambda job: -job[1]):
        total += use
        best = max(best, cycles_at(total, rate) + apart)
    return best
