"""The MILP solver: the whole problem as a mixed-integer program, through PuLP.

Or the model as a file, for a solver of the user's own.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from spmilp.errors import SpmilpError
from spmilp.files import write_atomically
from spmilp.plan.plan import Plan
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import OutOfTimeError
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.fit import narrowed
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.candidates import Structure
from spmilp.solvers.exact.formulation.model import ModelOptions
from spmilp.solvers.exact.formulation.state import Found, SearchState
from spmilp.solvers.exact.formulation.translation import read_decisions
from spmilp.solvers.exact.milp.process import SolverProcessError, backend_name, model_file, run
from spmilp.solvers.exact.milp.program import Limits, TooLargeError
from spmilp.solvers.exact.milp.rows import Rows
from spmilp.solvers.schedule.solver import ListScheduler

NAME = "milp"

ROUNDS = 8
"""Models with open candidates built for one quantity."""

BOUND_SHARE = 0.6
"""The share of the time left that a model with open candidates may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MilpOptions(ModelOptions):
    """Settings beside :class:`~spmilp.solvers.base.SolveOptions`.

    Parameters
    ----------
    backend
        The name of a solver in PuLP: ``HiGHS``, ``CBC``, ``GUROBI``, ``CPLEX_PY`` ...
    most_whole
        The largest model that is tried, in variables that have to be integers.
    """

    addresses_in_model: bool | None = False
    working_sets: bool = False
    residencies: int = 1
    most_residencies: int = 6
    backend: str = "HiGHS"
    most_whole: int = 20_000


DEFAULTS = MilpOptions()


class MilpSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start: its makespan is the horizon and so every big-M, and only
    better plans are searched for. :mod:`spmilp.solvers.exact.milp` has the model and its proofs.
    """

    name = NAME
    keeps = frozenset(PinKind)

    def __init__(self, settings: MilpOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint.

        A problem whose model would be too large is refused: the status is ``unknown``, and the
        reason says how large it would be.

        Raises
        ------
        SpmilpError
            If PuLP does not know the backend, or it is not installed.
        """
        backend = backend_name(self._settings.backend)
        try:
            refuse_problem(context.problem, self._settings)
            return self._solve(context, backend)
        except TooLargeError as error:
            return context.unknown(str(error))

    def _solve(self, context: SearchContext, backend: str) -> SolverResult:
        start = ListScheduler().search_within_pins(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        search = MilpSearch(context, self._settings, start, NAME)
        search.backend = backend
        for plan in (start.plan, context.hint):
            if plan is not None:
                search.offer(plan)
        with context.until_interrupted(lambda: search.incumbent.plan is not None):
            if not start.interrupted:
                try:
                    search.run()
                except SolverProcessError:
                    # What has been found before the solver's process fails is kept.
                    if search.incumbent.plan is None:
                        raise
        return search.result(start.reason or "a limit was reached before a plan was found")


class MilpSearch(SearchState[MilpOptions]):
    """The search of one solve: one quantity after the other, with those before it held.

    Attributes
    ----------
    backend
        The name that PuLP has for the solver.
    """

    backend = ""
    _is_believed = True
    _ties_proven = False
    _runs = 0

    def offer(self, plan: Plan) -> None:
        """Take a plan that the checker accepts as incumbent if it is better."""
        if not self.context.accepts(plan):
            return
        if self.context.values(plan)[0] < self.incumbent.bound.value:
            # No plan is below a bound, so the backend was wrong: nothing it proves counts.
            self._is_believed = False
            self.incumbent.bound = self.context.bound
        self.incumbent.offer(plan)

    def run(self) -> None:
        """Minimise one quantity after the other.

        Raises
        ------
        TooLargeError
            If already the first model of the first quantity is too large.
        """
        if not all(self.tables.pools_of(task.index) for task in self.problem.tasks):
            self.conclude_infeasible()
            return
        self._ties_proven = True
        for position, quantity in enumerate(self.order):
            if quantity is Quantity.PEAK_SPM:
                self.builder.ample = False
            try:
                proven = self._minimise(position)
            except TooLargeError:
                if position == 0 and self._runs == 0:
                    raise
                proven = False
            self._ties_proven = self._ties_proven and (proven or position == 0)
            if self.incumbent.plan is None:
                return

    def result(self, reason: str) -> SolverResult:
        """Return what was found; without a plan for that reason, unless infeasibility is proven."""
        plan, bound = self.incumbent.plan, self.incumbent.bound
        if plan is None and self.infeasible:
            return self.context.infeasible(self.infeasible, bound)
        if plan is None:
            return self.context.unknown(reason, bound)
        is_proven = self.incumbent.value == bound.value and self._ties_proven
        options = (("backend", self.backend), ("tie_breakers", "proven" if is_proven else "open"))
        return self.context.found(plan, bound, NAME, options)

    def _minimise(self, position: int) -> bool:
        """Minimise a quantity; say whether it is proven that it cannot be smaller.

        A model with open candidates gives a bound; late uses may keep its solution from being a
        plan. The same model without late uses then gives a plan. If that does not reach the bound,
        the slices that were used late get one more candidate, what has no addresses gets them into
        the model, and both are built again.
        """
        floor = self._floor(position)
        for _ in range(ROUNDS):
            if self._is_reached(position, floor) or self.clock.is_over():
                break
            relaxed = self.structure(relaxed=True)
            is_open = any(lifecycle.open for lifecycle in relaxed.lifecycles.values())
            found, conflict = self._run(relaxed, position, floor, BOUND_SHARE if is_open else 1.0)
            floor = self._conclude(found, position, floor)
            if self.infeasible or self._is_reached(position, floor) or self.clock.is_over():
                break
            late = found.solutions[-1].late if found.solutions else frozenset()
            if late or not found.complete or not found.solutions:
                _, other = self._run(self.structure(relaxed=False), position, floor, 1.0)
                conflict = conflict or other
            if not found.complete or not (conflict or (late and self.builder.add_candidates(late))):
                break
        reached = self.incumbent.plan is not None and self.incumbent.values[position] <= floor
        return reached and self._is_believed

    def _floor(self, position: int) -> int:
        known = self.context.bound_on(self.order[position]).value
        return max(known, self.incumbent.bound.value) if position == 0 else known

    def _conclude(self, found: Found, position: int, floor: int) -> int:
        """Return the new floor of a quantity, after a run whose model leaves nothing out."""
        if not self._is_believed:
            return self._floor(position)
        if found.infeasible and self.incumbent.plan is None:
            self.conclude_infeasible()
        elif found.infeasible:
            floor = max(floor, self.incumbent.values[position])
        elif found.bound is not None:
            floor = max(floor, found.bound)
        if position == 0:
            floor = min(floor, self.incumbent.value or floor)
            self.incumbent.prove(floor, f"{NAME} ({self.backend})")
        return floor

    def _run(
        self, structure: Structure, position: int, floor: int, share: float
    ) -> tuple[Found, bool]:
        """Look for anything better than the incumbent in a model of a structure.

        Returns
        -------
        tuple[Found, bool]
            The run, and whether its solution has no addresses and further models know them.
        """
        if structure.literals > self.settings.most_whole:
            raise TooLargeError(f"about {structure.literals}", self.settings.most_whole)
        model = self.model(structure, position)
        high = None if model.high is None else model.high - 1
        most, makespan = self.settings.most_whole, model.variables.makespan
        try:
            rows = Rows(model.cp, makespan, floor, high, most, self.clock.go_on)
        except OutOfTimeError:
            return Found(), False
        self._runs += 1
        options, left = self.context.options, self.clock.seconds_left()
        limits = Limits(
            seconds=None if left is None else share * left,
            threads=options.workers,
            seed=options.seed,
            gap=options.gap if position == 0 else 0.0,
        )
        outcome = run(rows.program, self.backend, limits)
        found = Found(infeasible=outcome.infeasible, complete=outcome.complete, bound=outcome.bound)
        decided = None if outcome.values is None else rows.decided(outcome.values)
        if decided is not None:
            found.solutions.append(read_decisions(model.variables, decided.value))
        conflict = self.take(found)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return found, conflict is not None and self.learn(conflict)

    def _is_reached(self, position: int, floor: int) -> bool:
        """Say whether the incumbent is as near to the floor as was asked for."""
        if self.incumbent.plan is None:
            return False
        value = self.incumbent.values[position]
        return self.context.is_enough(value, floor) if position == 0 else value <= floor


def refuse_problem(problem: Problem, settings: MilpOptions) -> None:
    """Refuse a problem by its tasks and memories alone.

    Raises
    ------
    TooLargeError
        If every model of it would be too large: each task has a variable for each slice that it
        reads and each memory in which it may run, at the least.
    """
    reads = sum(1 + len(task.reads) for task in problem.tasks)
    count = reads * len({core.memory for core in problem.machine.cores})
    if count > settings.most_whole:
        raise TooLargeError(f"at least {count}", settings.most_whole)


SUFFIXES = (".mps", ".lp")


def write_model(
    problem: Problem, path: Path, *, candidates: int = 2, settings: MilpOptions = DEFAULTS
) -> None:
    """Write the model of a problem's first objective.

    Every solution of it is a plan. The list scheduler's plan, if it has one, gives the horizon and
    the greatest value allowed of the objective, which are part of the model. The same problem gives
    the same bytes.

    Parameters
    ----------
    path
        Its suffix says in what format: ``.mps`` or ``.lp``.
    candidates
        How often a slice may lie in one memory that is not large enough for all.
        The optimum of the file is that of the problem unless the best plans all need more.

    Raises
    ------
    SpmilpError
        If the suffix is another one, the model would be too large, or it is known to have no
        solution.
    FileError
        If the file cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise SpmilpError(f"{path}: a model is written as {' or '.join(SUFFIXES)}")
    refuse_problem(problem, settings)
    refuse_contradictions(problem)
    problem = narrowed(problem).problem
    context = SearchContext(problem, SolveOptions())
    start = ListScheduler().search_within_pins(context)
    known = replace(settings, addresses_in_model=True, residencies=candidates)
    search = MilpSearch(context, known, start, NAME)
    search.builder.ample = False
    if start.plan is not None:
        search.offer(start.plan)
    model = search.model(search.structure(relaxed=False), 0)
    rows = Rows(model.cp, model.variables.makespan, model.low, model.high, settings.most_whole)
    if rows.program.is_impossible:
        raise SpmilpError(f"{problem.name}: no plan exists, so there is no model to write")
    write_atomically(path, model_file(rows.program, path.suffix.lower()))
