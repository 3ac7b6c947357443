"""Brute force as a solver: slow, plain, and the oracle for the others; or why there is no plan."""

from collections.abc import Sequence
from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import Measures, claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem, Task
from spmilp.registry import find_solver
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.units import Bytes, SliceIdx, TaskIdx
from tests.oracle.reconstruct import Reconstruction
from tests.oracle.search import LimitReachedError, Limits, Search
from tests.oracle.tables import CoreGroup, ProblemTables
from tests.oracle.transfer_options import UNREACHABLE, TransferOptions

MOST_STATES = 200_000
"""States looked at before the search gives up; they take about a gigabyte."""

NAME = "bruteforce"
SOURCE = "exhaustive search"


class BruteForce(Solver):
    """Finds the best plan of a tiny problem, in all quantities of its objective, or proves none.

    See :mod:`tests.oracle` for why the search is exhaustive.

    Parameters
    ----------
    most_states
        States to look at before it gives up.
    """

    name = NAME
    keeps = frozenset(PinKind) - {PinKind.RESIDENT}

    def __init__(self, most_states: int = MOST_STATES) -> None:
        self._most_states = most_states

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan (a ``hint`` is of no use to it).

        The status is ``optimal`` as soon as the first quantity is proven; the option
        ``tie_breakers`` of the plan says whether the others are, too.
        """
        return _Run(context, Limits(context.clock, self._most_states)).result()


class _Run:
    def __init__(self, context: SearchContext, limits: Limits) -> None:
        self._context = context
        self._problem = problem = context.problem
        self._limits = limits
        self._least_peak = least_peak(problem)
        self._best: tuple[Plan, Measures] | None = None
        self._ceilings: dict[Quantity, int] = {}
        self._peak: Bytes | None = None
        is_peak = problem.objective.first is Quantity.PEAK_SPM
        self._bound = Bound(SOURCE, problem.objective.first, self._least_peak if is_peak else 0)

    def result(self) -> SolverResult:
        """Search, and say how it ended."""
        reason = why_too_small(ProblemTables(self._problem))
        if reason:
            return self._context.infeasible(reason, self._bound)
        is_over = False
        try:
            with self._context.until_interrupted(lambda: self._best is not None):
                self._search()
                is_over = True
        except LimitReachedError as stopped:
            if not self._ceilings:
                self._prove(stopped.bound)
        if self._best is None:
            states = self._limits.states
            if is_over:
                reason = why_no_plan(self._problem, states)
                return self._context.infeasible(reason, self._bound)
            reason = f"the limit came after {states} states, before the first plan"
            return self._context.unknown(reason, self._bound)
        plan, measures = self._best
        if is_over:
            self._prove(measures.of(self._problem.objective.first))
        options = (("tie_breakers", "proven" if is_over else "open"),)
        return self._context.found(plan, self._bound, NAME, options)

    def _prove(self, value: int) -> None:
        self._bound = replace(self._bound, value=max(value, self._bound.value))

    def _search(self) -> None:
        """Minimise one quantity after the other, and keep it at its minimum.

        Quantities that add up along a plan are taken together, but those that rank before the
        makespan come first on their own: then cycles do not count yet, and the search is short.
        """
        for stage in stages(self._problem.objective.order):
            found = (
                self._lower_the_peak()
                if Quantity.PEAK_SPM in stage
                else self._find(stage, self._peak)
            )
            if not found:
                return
            for quantity in stage:
                self._ceilings[quantity] = self._value(quantity)
            if Quantity.PEAK_SPM in stage:
                self._peak = self._value(Quantity.PEAK_SPM)
            self._report()

    def _lower_the_peak(self) -> bool:
        """Find a plan within the ceilings, then such plans in fewer bytes, until there is none."""
        if self._best is None and not self._find((), None):
            return False
        while self._value(Quantity.PEAK_SPM) > self._least_peak:
            if not self._find((), self._value(Quantity.PEAK_SPM) - 1):
                break
        return True

    def _find(self, order: Sequence[Quantity], peak: Bytes | None) -> bool:
        """Find the best plan within the ceilings; say whether there is one."""
        ceilings = dict(self._ceilings)
        ceilings.pop(Quantity.PEAK_SPM, None)
        search = Search(ProblemTables(self._problem, peak), order, ceilings, self._limits)
        path = search.best_path()
        if path is None:
            return False
        parts = Reconstruction(search, path).parts()
        measures = measure(self._problem, parts.placements, parts.residencies, parts.transfers)
        plan = Plan(
            placements=parts.placements,
            residencies=parts.residencies,
            transfers=parts.transfers,
            tensors=parts.tensors,
            claim=claim_of(measures, 0, SOURCE),
            solver=NAME,
        )
        self._best = plan, measures
        return True

    def _value(self, quantity: Quantity) -> int:
        return 0 if self._best is None else self._best[1].of(quantity)

    def _report(self) -> None:
        """Note that the first quantity is proven, once it is."""
        value = self._value(self._problem.objective.first)
        self._prove(value)
        self._context.report(value, self._bound.value, NAME)


def stages(order: Sequence[Quantity]) -> list[tuple[Quantity, ...]]:
    """Return the quantities in the groups in which they are minimised."""
    groups: list[tuple[Quantity, ...]] = []
    for quantity in order:
        is_alone = quantity in (Quantity.PEAK_SPM, Quantity.MAKESPAN)
        if not groups or is_alone or groups[-1] == (Quantity.PEAK_SPM,):
            groups.append((quantity,))
        else:
            groups[-1] += (quantity,)
    return groups


def least_bytes(tables: ProblemTables, task: Task, group: CoreGroup) -> Bytes:
    """Return the bytes that a task needs at least at one time in the memory of its core.

    Of each buffer that it reads, its largest slice, unless cores read remotely; its results,
    unless they may overwrite something; its scratch. Padding between them is left aside.
    """
    problem = tables.problem
    largest: dict[int, Bytes] = {}
    if len(group.readable) == 1:
        for read in task.reads:
            if tables.home(read, group.memory) is None:
                size = problem.slices[read].bytes
                buffer = tables.whole[read]
                largest[buffer] = max(largest.get(buffer, 0), size)
    overwriting = {written for _, written in task.in_place}
    written = sum(
        problem.buffers[buffer].bytes
        for buffer in task.writes
        if buffer not in overwriting and tables.home(buffer, group.memory) is None
    )
    return sum(largest.values()) + written + task.scratch


def least_peak(problem: Problem) -> Bytes:
    """Return a lower bound on the peak of the scratchpads: the most that a single task needs."""
    tables = ProblemTables(problem)
    kinds = [memory.kind for memory in problem.machine.memories]
    return max(
        (
            min(
                (
                    least_bytes(tables, task, group) if kinds[group.memory] is MemoryKind.SPM else 0
                    for _, group, _ in tables.able[task.index]
                ),
                default=0,
            )
            for task in problem.tasks
        ),
        default=0,
    )


def why_too_small(tables: ProblemTables) -> str:
    """Return why some task fits on no core, however empty; nothing if each one may fit."""
    reasons = (_why_nowhere(tables, task) for task in tables.problem.tasks)
    return next((reason for reason in reasons if reason), "")


def why_no_plan(problem: Problem, states: int) -> str:
    """Return why a problem is infeasible although each task fits alone."""
    return _why_unreachable(ProblemTables(problem)) or (
        f"all {states} states that plans can pass through were searched and none is complete: each "
        "task fits alone, but no order of tasks and transfers leaves room for all that must stay; "
        "give the memories more bytes or cut the tiles smaller"
    )


def _why_nowhere(tables: ProblemTables, task: Task) -> str:
    """Say how many bytes are missing for a task on the cores where the fewest are."""
    shortages: list[tuple[Bytes, str]] = []
    for _, group, _ in tables.able[task.index]:
        memory = tables.machine.memories[group.memory]
        needed = least_bytes(tables, task, group)
        if memory.usable is None or needed <= memory.usable:
            return ""
        shortages.append(
            (
                needed - memory.usable,
                f"task {task.index} ({task.name}) needs {needed} B in {memory.name} while it runs "
                f"> {memory.usable} B that can be used: {needed - memory.usable} B short",
            )
        )
    return min(shortages)[1] if shortages else _no_core(task)


def _no_core(task: Task) -> str:
    return f"task {task.index} ({task.name}) can run on no kind of core that the machine has"


def _why_unreachable(tables: ProblemTables) -> str:
    """Name a slice that no chain of transfers brings to where it is needed."""
    options = TransferOptions(tables)
    problem = tables.problem

    def is_reachable(slice_: SliceIdx, targets: set[int]) -> bool:
        buffer = problem.buffers[tables.whole[slice_]]
        writer = tables.writer[buffer.index]
        sources = {buffer.starts_in} if writer is None else _memories_of(tables, writer)
        cycles = options.fastest[slice_]
        return any(cycles[a][b] < UNREACHABLE for a in sources if a is not None for b in targets)

    for task in problem.tasks:
        readable = {m for _, group, _ in tables.able[task.index] for m in group.readable}
        for read in task.reads:
            if not is_reachable(read, readable):
                return (
                    f"no engine and route bring slice {read} "
                    f"({problem.buffers[tables.whole[read]].name}) where task {task.index} "
                    f"({task.name}) can read it"
                )
    for buffer in problem.buffers:
        if buffer.ends_in is not None and not is_reachable(buffer.index, {buffer.ends_in}):
            memory = problem.machine.memories[buffer.ends_in].name
            return f"no engine and route bring buffer {buffer.index} ({buffer.name}) to {memory}"
    return ""


def _memories_of(tables: ProblemTables, task: TaskIdx) -> set[int | None]:
    return {group.memory for _, group, _ in tables.able[task]}


def solver_named(name: str) -> Solver:
    """Return a solver of the package by its name, or brute force by its own."""
    return BruteForce() if name == NAME else find_solver(name)
