"""All proven lower bounds on the quantities of every valid plan of a problem, and the best."""

from collections.abc import Iterator
from dataclasses import dataclass

from spmilp.bounds.critical_path import Paths, PrecedenceGraph, critical_paths
from spmilp.bounds.energy import energy_bound
from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import paths_of
from spmilp.bounds.spills import spill_bound
from spmilp.bounds.stages import stages_bound
from spmilp.bounds.staggered import staggered_work_bound
from spmilp.bounds.traffic import traffic_bound
from spmilp.bounds.work import fractional_assignment_bound, work_bound
from spmilp.bounds.working_set import occupancy_bound, peak_bound
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Bound:
    """No valid plan has less.

    Parameters
    ----------
    name
        Of the argument that proves it.
    quantity
        What is bounded, in its own unit.
    """

    name: str
    quantity: Quantity
    value: int


def all_bounds(problem: Problem) -> tuple[Bound, ...]:
    """Return every bound that takes no search, on every quantity."""
    return tuple(bound for quantity in Quantity for bound in bounds_on(problem, quantity))


def best_bound(problem: Problem, quantity: str | None = None) -> Bound:
    """Return the largest bound that takes no search: no plan of the problem has less.

    Parameters
    ----------
    problem
        Whose plans are bounded.
    quantity
        ``makespan``, ``dram_traffic``, ``energy`` or ``peak_spm``; by default the problem's first
        objective.

    Returns
    -------
    Bound
        Its ``value`` in cycles, bytes or femtojoules, and the ``name`` of the argument that proves
        it.

    Raises
    ------
    ValueError
        If there is no such quantity.

    Examples
    --------
    >>> spmilp.bound(problem).value
    """
    wanted = problem.objective.first if quantity is None else Quantity(quantity)
    return max(bounds_in_turn(problem, wanted), key=lambda bound: bound.value)


def fast_bound(problem: Problem) -> Bound:
    """Return a bound on the first quantity that takes next to no time.

    On the makespan: work and traffic, with nothing before the first task or after the last one.
    """
    if problem.objective.first is not Quantity.MAKESPAN:
        return next(bounds_in_turn(problem, problem.objective.first))
    cycles = tuple(min(c for c in task.cycles if c is not None) for task in problem.tasks)
    if not _every_task_has_a_core(problem):
        return Bound("critical path", Quantity.MAKESPAN, max(cycles, default=0))
    paths = Paths(head=(0,) * len(cycles), cycles=cycles, tail=cycles)
    found = (
        Bound("work", Quantity.MAKESPAN, work_bound(problem, paths)),
        Bound("traffic", Quantity.MAKESPAN, traffic_bound(problem, Movement(problem), paths)),
    )
    return max(found, key=lambda bound: bound.value)


def bounds_on(problem: Problem, quantity: Quantity) -> tuple[Bound, ...]:
    """Return every bound on one quantity that takes no search."""
    return tuple(bounds_in_turn(problem, quantity))


def bounds_in_turn(problem: Problem, quantity: Quantity) -> Iterator[Bound]:
    """Yield every bound on one quantity that takes no search, each computed when it is asked for.

    There is at least one.
    """
    if quantity is Quantity.MAKESPAN:
        yield from _on_the_makespan(problem)
    elif quantity is Quantity.DRAM_TRAFFIC:
        compulsory = compulsory_dram_traffic(problem)
        yield Bound("compulsory traffic", quantity, compulsory)
        yield Bound("spills", quantity, compulsory + spill_bound(problem))
    elif quantity is Quantity.ENERGY:
        yield Bound("energy", quantity, energy_bound(problem))
    else:
        yield Bound("working set", quantity, peak_bound(problem))


def _on_the_makespan(problem: Problem) -> Iterator[Bound]:
    movement = Movement(problem)
    graph = PrecedenceGraph(problem, movement)
    makespan = Quantity.MAKESPAN
    yield Bound("critical path", makespan, critical_paths(graph).longest)
    if not _every_task_has_a_core(problem):
        return  # no plan exists; the others divide by numbers of cores
    paths = paths_of(problem, movement, graph)
    yield Bound("work", makespan, work_bound(problem, paths))
    yield Bound("staggered work", makespan, staggered_work_bound(problem, movement, paths))
    yield Bound("traffic", makespan, traffic_bound(problem, movement, paths))
    yield Bound("cuts", makespan, paths.longest)
    yield Bound("fractional assignment", makespan, fractional_assignment_bound(problem, paths))
    yield Bound("bytes in scratchpads", makespan, occupancy_bound(problem, graph.distances))
    yield Bound("stages", makespan, stages_bound(problem, movement, paths))


def _every_task_has_a_core(problem: Problem) -> bool:
    present = {core.kind for core in problem.machine.cores}
    return all(any(task.cycles[kind] is not None for kind in present) for task in problem.tasks)
