"""All bounds on a problem, and the best of them."""

from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import compulsory_dram_traffic as compulsory_traffic
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.bounds.bound import Bound
from spmilp.solvers.bounds.movement import Movement
from spmilp.solvers.bounds.paths import paths_of
from spmilp.solvers.bounds.traffic import traffic_bound
from spmilp.solvers.bounds.work import work_bound
from spmilp.units import Bytes, Femtojoules


def all_bounds(problem: Problem) -> tuple[Bound, ...]:
    """Return every bound on every quantity."""
    movement = Movement(problem)
    paths = paths_of(problem, movement)
    makespan, traffic = Quantity.MAKESPAN, Quantity.DRAM_TRAFFIC
    return (
        Bound("critical path", makespan, paths.longest),
        Bound("work", makespan, work_bound(problem, paths)),
        Bound("traffic", makespan, traffic_bound(problem, movement, paths)),
        Bound("compulsory traffic", traffic, compulsory_traffic(problem)),
        Bound("energy of the tasks", Quantity.ENERGY, _least_energy(problem)),
        Bound("working set", Quantity.PEAK_SPM, _largest_working_set(problem)),
    )


def best_bound(problem: Problem, quantity: Quantity | None = None) -> Bound:
    """Return the largest bound on a quantity, by default the problem's first."""
    wanted = problem.objective.first if quantity is None else quantity
    known = [bound for bound in all_bounds(problem) if bound.quantity is wanted]
    return max(known, key=lambda bound: bound.value)


def _least_energy(problem: Problem) -> Femtojoules:
    """Each task takes the energy of its most frugal kind; transfers are left aside."""
    return sum(min((e for e in task.energy if e is not None), default=0) for task in problem.tasks)


def _largest_working_set(problem: Problem) -> Bytes:
    """While a task runs in a scratchpad, what it reads and writes lies there side by side.

    What it writes may overwrite an operand; slices of one buffer may lie in one residency of the
    buffer, so only the largest one counts; reads do not count where cores read remote memories, nor
    does anything where a core's own memory is no scratchpad.
    """
    machine = problem.machine
    kinds = {machine.memories[core.memory].kind for core in machine.cores}
    if kinds != {MemoryKind.SPM}:
        return 0
    remote = machine.remote is not None
    return max((_working_set(problem, task, remote) for task in problem.tasks), default=0)


def _working_set(problem: Problem, task: Task, remote: bool) -> Bytes:
    largest: dict[int, Bytes] = {}
    if not remote:
        for read in task.reads:
            slice_ = problem.slices[read]
            largest[slice_.buffer] = max(largest.get(slice_.buffer, 0), slice_.bytes)
    overwritten = {written for _, written in task.in_place}
    written = sum(problem.buffers[b].bytes for b in task.writes if b not in overwritten)
    return sum(largest.values()) + written + task.scratch
