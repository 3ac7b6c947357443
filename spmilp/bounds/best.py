"""All proven lower bounds on the quantities of every valid plan of a problem, and the best."""

from collections.abc import Callable, Iterator
from functools import cache

from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import Paths, PrecedenceGraph, critical_paths, paths_of
from spmilp.bounds.period import proofs_of_period
from spmilp.bounds.proof import Bound as Bound
from spmilp.bounds.proof import Proof as Proof
from spmilp.bounds.resources import energy_bound, peak_bound, traffic_bound, work_bound
from spmilp.bounds.spills import spill_bound
from spmilp.bounds.stages import stages_bound
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.problem.objective import OF_ONE_INFERENCE, Quantity
from spmilp.problem.problem import Problem


def all_bounds(problem: Problem) -> tuple[Bound, ...]:
    """Return the best bound by each argument on every quantity, of those that take no search."""
    best: dict[tuple[Quantity, str], Bound] = {}
    for bound in (
        one for quantity in OF_ONE_INFERENCE for one in bounds_in_turn(problem, quantity)
    ):
        known = best.setdefault((bound.quantity, bound.name), bound)
        best[bound.quantity, bound.name] = max(known, bound, key=lambda one: one.value)
    return tuple(best.values())


def best_bound(problem: Problem, quantity: str | None = None) -> Bound:
    """Return the largest bound that takes no search: no plan of the problem has less.

    Parameters
    ----------
    problem
        Whose plans are bounded.
    quantity
        ``makespan``, ``dram_traffic``, ``energy``, ``peak_spm`` or ``period``; by default the
        problem's first objective.

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


def bounds_in_turn(problem: Problem, quantity: Quantity) -> Iterator[Bound]:
    """Yield every bound on one quantity that takes no search, each computed when it is asked for.

    There is at least one.
    """
    return (proof.bound() for proof in proofs(problem, quantity))


def proofs(problem: Problem, quantity: Quantity) -> Iterator[Proof]:
    """Yield a proof of every bound on one quantity that takes no search, the quick ones first.

    An argument may come twice: from chains alone at first, which is nearly as good and quick, and
    again from better heads and tails.
    """
    if quantity is Quantity.MAKESPAN:
        yield from _on_the_makespan(problem)
    elif quantity is Quantity.DRAM_TRAFFIC:
        compulsory = compulsory_dram_traffic(problem)
        yield Proof("compulsory traffic", quantity, lambda: compulsory)
        yield Proof("spills", quantity, lambda: compulsory + spill_bound(problem))
    elif quantity is Quantity.ENERGY:
        yield Proof("energy", quantity, lambda: energy_bound(problem))
    elif quantity is Quantity.PERIOD:
        yield from proofs_of_period(problem)
    else:
        yield Proof("working set", quantity, lambda: peak_bound(problem))


def _on_the_makespan(problem: Problem) -> Iterator[Proof]:
    # What the bounds share; each part is found when it is asked for.
    movement = cache(lambda: Movement(problem))
    graph = cache(lambda: PrecedenceGraph(problem, movement()))
    chains = cache(lambda: critical_paths(graph()))
    paths = cache(lambda: paths_of(problem, movement(), graph()))

    def proof(name: str, value: Callable[[], int], *, is_slow: bool = False) -> Proof:
        return Proof(name, Quantity.MAKESPAN, value, is_slow)

    yield proof("critical path", lambda: chains().longest)
    if not _every_task_has_a_core(problem):
        return  # no plan exists; the others divide by numbers of cores
    yield proof("work", lambda: work_bound(problem, chains()))
    yield proof("stages", lambda: stages_bound(problem, movement(), chains()))
    yield proof("work", lambda: work_bound(problem, paths()), is_slow=True)
    yield proof("traffic", lambda: traffic_bound(problem, movement(), paths()))
    yield proof("cuts", lambda: paths().longest)
    yield proof("stages", lambda: stages_bound(problem, movement(), paths()))


def _every_task_has_a_core(problem: Problem) -> bool:
    present = {core.kind for core in problem.machine.cores}
    return all(any(task.cycles[kind] is not None for kind in present) for task in problem.tasks)
