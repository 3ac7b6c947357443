"""Brute force as a solver: slow, plain, and the oracle for the others."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count

from spmilp.bounds.best import Bound
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place
from spmilp.registry import find_solver
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.units import Bytes, Cycles, MemoryIdx
from tests.oracle.rules import Rules
from tests.oracle.search import Path, Search, State, TaskStart, TooManyStatesError, TransferStart

NAME = "bruteforce"
SOURCE = "exhaustive search"


class BruteForce(Solver):
    """Finds the best plan of a tiny problem, or proves that there is none.

    Its plan is the best in all quantities of the objective; in the peak only where that is first.

    See :mod:`tests.oracle` for why the search is exhaustive.

    Parameters
    ----------
    most_states
        States that one search may look at; the answer is ``unknown`` if that is not enough.
    """

    name = NAME
    keeps = frozenset(PinKind) - {PinKind.RESIDENT}

    def __init__(self, most_states: int = 50_000) -> None:
        self._most_states = most_states

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan; a ``hint`` is of no use to it."""
        first = context.problem.objective.first
        nothing = Bound(SOURCE, first, 0)
        try:
            plan = self._best(context.problem)
        except TooManyStatesError:
            return context.unknown(f"{self._most_states} states are too few", nothing)
        if plan is None:
            return context.infeasible("no state that plans can pass through is complete", nothing)
        return context.found(plan, Bound(SOURCE, first, value(plan, first)), NAME)

    def _best(self, problem: Problem) -> Plan | None:
        """Minimise one quantity after the other, and keep it at its minimum.

        Those that add up along a plan are taken together from the makespan on; before it cycles do
        not count yet, and the search is short. The peak is minimised where it comes first only.
        """
        ceilings: dict[Quantity, int] = {}
        best, peak = self._plan(problem, (), {}, None), None
        if best is not None and problem.objective.first is Quantity.PEAK_SPM:
            best = self._with_least_peak(problem, best)
            peak = value(best, Quantity.PEAK_SPM)
        if best is not None:
            others = [one for one in problem.objective.order if one is not Quantity.PEAK_SPM]
            place = others.index(Quantity.MAKESPAN)
            for stage in filter(None, (others[:place], others[place:])):
                best = self._plan(problem, stage, ceilings, peak)
                ceilings |= {quantity: value(best, quantity) for quantity in stage}
        return best

    def _with_least_peak(self, problem: Problem, best: Plan) -> Plan:
        """Bisect; in small scratchpads there is little to search, so they come first."""
        low, high = 0, value(best, Quantity.PEAK_SPM)
        while low < high:
            peak = min((low + high) // 2, 2 * low + 15)
            plan = self._plan(problem, (), {}, peak)
            if plan is None:
                low = peak + 1
            else:
                best, high = plan, value(plan, Quantity.PEAK_SPM)
        return best

    def _plan(
        self,
        problem: Problem,
        order: Sequence[Quantity],
        ceilings: dict[Quantity, int],
        peak: Bytes | None,
    ) -> Plan | None:
        rules = Rules(problem, peak)
        path = Search(rules, order, ceilings).best_path(self._most_states)
        return None if path is None else _PlanOfPath(rules, path).plan()


def value(plan: Plan | None, quantity: Quantity) -> int:
    """Return what a plan claims of a quantity."""
    return 0 if plan is None else int(getattr(plan.claim, quantity))


class _PlanOfPath:
    """Follows the steps of a path from cycle 0; its residencies go by their names there."""

    def __init__(self, rules: Rules, path: Path) -> None:
        self._rules = rules
        self._problem = rules.problem
        self._path = path
        self._steps: list[Path] = [path]
        while self._steps[-1].before is not None:
            self._steps.append(self._steps[-1].before)
        self._steps.reverse()
        self._thing: dict[int, tuple[int, MemoryIdx, Cycles]] = {}
        self._filled: dict[int, tuple[int | None, int | None]] = {}
        self._until: dict[int, Cycles] = defaultdict(int)
        self._address, self._tensors = self._addresses()

    def plan(self) -> Plan:
        """Return the plan, with what is of use."""
        for step in self._steps:
            for memory, contents in enumerate(step.state.memories):
                for one in contents.lives:
                    self._thing.setdefault(one.name, (one.thing, memory, step.cost.makespan))
        started = [step for step in self._steps if isinstance(step.step, TaskStart)]
        moved = [step for step in self._steps if isinstance(step.step, TransferStart)]
        for step in started:
            self._note_task(step.step, step.cost.makespan)
        for index, step in enumerate(moved):
            self._note_transfer(index, step.step, step.cost.makespan)
        self._keep_outputs(self._path.state, max(1, self._path.cost.makespan))
        number = {name: index for index, name in enumerate(sorted(self._until))}
        placements, transfers = self._placements(started, number), self._transfers(moved, number)
        residencies = tuple(self._residency(name, number) for name in sorted(self._until))
        return Plan(
            placements=placements,
            residencies=residencies,
            transfers=transfers,
            tensors=self._tensors,
            claim=claim_of(measure(self._problem, placements, residencies, transfers), 0, SOURCE),
            solver=NAME,
        )

    def _note_task(self, start: TaskStart, now: Cycles) -> None:
        written = [*start.writes, *([] if start.scratch is None else [start.scratch])]
        for name in (*start.reads, *written):
            self._until[name] = max(self._until[name], now + start.cycles)
        self._filled |= dict.fromkeys(start.writes, (start.task, None))

    def _note_transfer(self, index: int, start: TransferStart, now: Cycles) -> None:
        self._until[start.source] = max(self._until[start.source], now + start.transfer.sent)
        for name in start.destinations:
            self._until[name] = max(self._until[name], now + start.transfer.arrived)
        self._filled |= dict.fromkeys(start.destinations, (None, index))

    def _keep_outputs(self, state: State, end: Cycles) -> None:
        """Let one residency of each buffer that must end in a memory last until the end."""
        for buffer in self._problem.buffers:
            if buffer.ends_in is not None:
                lives = state.memories[buffer.ends_in].lives
                kept = next(o for o in lives if o.thing == buffer.index and not o.leaving)
                self._until[kept.name] = end

    def _residency(self, name: int, number: dict[int, int]) -> Residency:
        thing, memory, start = self._thing[name]
        task, transfer = self._filled.get(name, (None, None))
        home = self._rules.home(thing, memory)
        offset = self._address[name]
        if home is not None:
            offset = self._tensors[home] + layout_at_place(self._problem, thing).offset
        return Residency(
            index=number[name],
            slice=None if thing < 0 else thing,
            memory=memory,
            offset=offset,
            bytes=self._rules.size(thing),
            start=start,
            end=self._until[name],
            filled_by_task=task,
            filled_by_transfer=transfer,
        )

    def _placements(self, started: Sequence[Path], number: dict[int, int]) -> tuple[Placement, ...]:
        free = [0] * len(self._rules.machine.cores)
        found = {}
        for step in started:
            start, now = step.step, step.cost.makespan
            if isinstance(start, TaskStart):
                cores = self._rules.groups[start.group].cores
                core = next(core for core in cores if free[core] <= now)
                free[core] = now + start.cycles
                found[start.task] = Placement(
                    task=start.task,
                    core=core,
                    start=now,
                    end=now + start.cycles,
                    reads=tuple(number[name] for name in start.reads),
                    writes=tuple(number[name] for name in start.writes),
                    scratch=None if start.scratch is None else number[start.scratch],
                )
        return tuple(found[task] for task in sorted(found))

    def _transfers(self, moved: Sequence[Path], number: dict[int, int]) -> tuple[Transfer, ...]:
        free: dict[tuple[int, int], Cycles] = defaultdict(int)
        found = []
        for index, step in enumerate(moved):
            start, now = step.step, step.cost.makespan
            if isinstance(start, TransferStart):
                move = start.transfer
                channel = next(c for c in count() if free[move.engine, c] <= now)
                free[move.engine, channel] = now + move.busy
                found.append(
                    Transfer(
                        index=index,
                        slice=start.slice,
                        source=number[start.source],
                        destinations=tuple(number[name] for name in start.destinations),
                        engine=move.engine,
                        channel=channel,
                        start=now,
                        sent=now + move.sent,
                        end=now + move.arrived,
                        route=move.links,
                    )
                )
        return tuple(found)

    def _addresses(self) -> tuple[dict[int, Bytes], tuple[Bytes, ...]]:
        """Return the addresses of residencies, by name, and of tensors.

        From the last state back: each of its layouts comes from one of the state before, in which
        what lies in both has the same address.
        """
        at: dict[int, Bytes] = {}
        tensors = [0] * len(self._problem.tensors)
        fixed: dict[tuple[MemoryIdx, int], Bytes] = {}
        for step in reversed(self._steps):
            for memory, contents in enumerate(step.state.memories):
                of_tensors = [t.index for t in self._problem.tensors if t.memory == memory]
                names = [*(-1 - t for t in of_tensors), *(one.name for one in contents.lives)]
                layout = min(
                    layout
                    for layout in contents.layouts
                    if all(
                        fixed.get((memory, name), address) == address
                        for name, address in zip(names, layout, strict=True)
                    )
                )
                fixed |= {(memory, name): at for name, at in zip(names, layout, strict=True)}
        for (_, name), address in fixed.items():
            if name < 0:
                tensors[-1 - name] = address
            else:
                at[name] = address
        return at, tuple(tensors)


def proven(problem: Problem, plan: Plan | None) -> list[int]:
    """Return what a plan claims of the quantities in which brute force proves the best."""
    order = problem.objective.order
    last = [] if order[0] is Quantity.PEAK_SPM else [Quantity.PEAK_SPM]
    return [value(plan, one) for one in order if one not in last]


def solver_named(name: str) -> Solver:
    """Return a solver of the package by its name, or brute force by its own."""
    return BruteForce() if name == NAME else find_solver(name)
