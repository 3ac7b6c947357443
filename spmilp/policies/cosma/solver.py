"""COSMA as a solver: its model on a problem's whole buffers, and the plan of its solution."""

from ortools.sat.python.cp_model import FEASIBLE, OPTIMAL, CpSolver

from spmilp.plan.plan import Plan
from spmilp.policies.cosma.model import CosmaModel
from spmilp.policies.cosma.network import Network, network_of
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    made_short,
    the_dram,
)
from spmilp.problem.pins import PinKind
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import NARROWING, Solver
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import BufferIdx, MemoryIdx

MOST_TENSORS = 400
"""The model has variables for each tensor at each step, and there are as many steps."""

SHARE = 0.9
"""Of the time limit, by which the model's search has ended."""


class Cosma(Solver):
    """Decides order, addresses and spills of one scratchpad together, for least DRAM traffic.

    Parameters
    ----------
    patience
        Deterministic time where no time limit ends the search; about seconds.
    """

    name = "cosma"
    keeps = NARROWING - {PinKind.NOT_BEFORE}  # for which there would have to be a second core

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the model's best solution; the bound is one that takes no search."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return self._search(context)
        except NotTakenError as error:
            return context.unknown(str(error))

    def _search(self, context: SearchContext) -> SolverResult:
        tables = ProblemTables(context.problem)
        dram = the_dram(context.problem, self.name)
        network, memory, capacity = network_of(tables)
        if len(network.sizes) > MOST_TENSORS:
            raise NotTakenError(
                f"cosma's model is for {MOST_TENSORS} buffers at most; there are "
                f"{len(network.sizes)}; use larger tiles"
            )
        outside = frozenset(network.inputs) | network.outputs
        model = CosmaModel(network, capacity, outside=outside)
        solver, found = CpSolver(), False
        with context.until_interrupted(lambda: found):
            found = self._solve(context, model, solver)
        if not found:
            return context.unknown("cosma's model: no solution was found within the limits")
        written = _taken_down(tables, network, memory, dram, model, solver)
        cores = dict.fromkeys(range(len(context.problem.tasks)), 0)
        plan = addressed(tables, written.decisions(), cores, context.fast_bound)
        if not isinstance(plan, Plan):
            name = context.problem.machine.memories[plan.memory].name
            return context.unknown(f"no addresses for cosma's solution in {name}")
        plan, bound = made_short(context, plan), context.bound
        context.report(context.values(plan)[0], bound.value, self.name)
        return context.found(plan, bound, self.name)

    def _solve(self, context: SearchContext, model: CosmaModel, solver: CpSolver) -> bool:
        """Search, in another thread; say whether there is a solution."""
        parameters, seconds = solver.parameters, context.clock.seconds_left(SHARE)
        parameters.num_workers = context.options.workers
        parameters.random_seed = context.options.seed
        parameters.catch_sigint_signal = False
        if seconds is None:
            parameters.max_deterministic_time = self._patience
        else:
            parameters.max_time_in_seconds = max(0.1, seconds)
        status, interrupted = context.reports.finish(
            lambda: solver.solve(model.cp), solver.stop_search
        )
        found = status in (OPTIMAL, FEASIBLE)
        if interrupted and not found:
            raise KeyboardInterrupt
        context.interrupted |= interrupted
        return found


def _taken_down(
    tables: ProblemTables,
    network: Network,
    memory: MemoryIdx,
    dram: MemoryIdx,
    model: CosmaModel,
    solver: CpSolver,
) -> OneAfterAnother:
    """Write down each step's spills, loads and task; outputs are stored when they are written."""
    problem, written = tables.problem, OneAfterAnother(tables, dram)
    outside = set(network.inputs)
    held: dict[BufferIdx, CandidateResidency] = {}
    for step in model.read(solver.value):
        for buffer in step.spilled:
            if buffer not in outside:
                written.store(held[buffer])
                outside.add(buffer)
        for buffer in step.retrieved:
            held[buffer] = written.load(buffer, memory)
        if step.created not in network.writers:
            held[step.created] = written.load(step.created, memory)
            continue
        task = problem.tasks[network.writers[step.created]]
        operands = [held[problem.slices[read].buffer] for read in task.reads]
        held.update(written.run(task.index, 0, operands))
        if step.created in network.outputs:
            written.store(held[step.created])
            outside.add(step.created)
    return written
