"""All bounds on a problem, and the best of them."""

from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.bounds.bound import Bound
from spmilp.solvers.bounds.chains import Chains, longest_chains
from spmilp.solvers.bounds.cuts import heads_and_tails
from spmilp.solvers.bounds.energy import energy_bound
from spmilp.solvers.bounds.movement import Movement
from spmilp.solvers.bounds.occupancy import occupancy_bound
from spmilp.solvers.bounds.peak import peak_bound
from spmilp.solvers.bounds.shares import shares_bound
from spmilp.solvers.bounds.spills import spill_bound
from spmilp.solvers.bounds.stages.program import stages_bound
from spmilp.solvers.bounds.traffic import traffic_bound
from spmilp.solvers.bounds.work import work_bound


def all_bounds(problem: Problem) -> tuple[Bound, ...]:
    """Return every bound that takes no search, on every quantity."""
    movement = Movement(problem)
    chains = Chains(problem, movement)
    single = longest_chains(chains)
    paths = heads_and_tails(problem, movement, chains)
    compulsory = compulsory_dram_traffic(problem)
    makespan, traffic = Quantity.MAKESPAN, Quantity.DRAM_TRAFFIC
    return (
        Bound("critical path", makespan, single.longest),
        Bound("work", makespan, work_bound(problem, paths)),
        Bound("traffic", makespan, traffic_bound(problem, movement, paths)),
        Bound("cuts", makespan, paths.longest),
        Bound("shares of cores", makespan, shares_bound(problem, paths)),
        Bound("bytes in scratchpads", makespan, occupancy_bound(problem)),
        Bound("stages", makespan, stages_bound(problem, movement, paths)),
        Bound("compulsory traffic", traffic, compulsory),
        Bound("spills", traffic, compulsory + spill_bound(problem)),
        Bound("energy", Quantity.ENERGY, energy_bound(problem)),
        Bound("working set", Quantity.PEAK_SPM, peak_bound(problem)),
    )


def best_bound(problem: Problem, quantity: Quantity | None = None) -> Bound:
    """Return the largest bound on a quantity, by default the problem's first."""
    wanted = problem.objective.first if quantity is None else quantity
    known = [bound for bound in all_bounds(problem) if bound.quantity is wanted]
    return max(known, key=lambda bound: bound.value)
