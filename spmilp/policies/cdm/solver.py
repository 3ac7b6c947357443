"""The policy as a solver: a placement, and its plan."""

from collections.abc import Mapping

from spmilp.plan.plan import Plan
from spmilp.policies.cdm.data import Accesses
from spmilp.policies.cdm.iterative import Freedom, Improvement
from spmilp.policies.cdm.parts import Part, Placement, Role, Step
from spmilp.policies.cdm.program import PlacementProgram
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    made_short,
    the_dram,
)
from spmilp.policies.onsram.pinned import cores_of
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.formulation.addresses import ConflictSet
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.milp.program import Limits
from spmilp.units import BufferIdx, MemoryIdx

MOST_PARTS = 20_000
"""Variables of the program, at most."""

NODES = 200
"""Of the search tree of HiGHS, where no time limit ends the search."""

SHARE_OF_PARTS = 0.35
"""Of the time limit, by which it is known what placements can be made of."""

SHARE = 0.7
"""Of the time limit, by which the search for a placement has ended."""


class Cdm(Solver):
    """Places buffers in scratchpads, in several where that pays, or off chip.

    Parameters
    ----------
    exact
        Find the placement by a 0/1 program instead of the iterative algorithm.
    freedom
        What placements may make use of.
    """

    def __init__(self, *, exact: bool, freedom: Freedom | None = None) -> None:
        self._exact = exact
        self._freedom = freedom or Freedom()
        self.name = "cdm:ilp" if exact else "cdm:iterative"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the placement; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return self._search(context)
        except NotTakenError as error:
            return context.unknown(str(error))

    def _search(self, context: SearchContext) -> SolverResult:
        tables = ProblemTables(context.problem)
        cores = cores_of(tables)
        dram = the_dram(context.problem, "cdm")
        accesses = Accesses(tables, cores, dram, lambda: context.clock.is_over(SHARE_OF_PARTS))
        if self._exact and len(accesses.parts) > MOST_PARTS:
            raise NotTakenError(
                f"cdm:ilp takes programs of {MOST_PARTS} variables; this one has "
                f"{len(accesses.parts)}; use cdm:iterative or larger tiles"
            )
        apart: Placement = frozenset()
        while True:
            placement = self._placement(context, accesses, apart)
            decisions = _taken_down(accesses, placement).decisions()
            plan = addressed(tables, decisions, dict(enumerate(cores)), context.fast_bound)
            if isinstance(plan, Plan):
                break
            rival = _largest_rival(accesses, plan, placement)
            if rival is None:
                return context.unknown(f"{context.problem.name}: no addresses, all data off chip")
            apart |= {rival}
        bound = context.bound
        plan = made_short(context, plan, keeps_transfers=True)
        context.report(context.values(plan)[0], bound.value, self.name)
        return context.found(plan, bound, self.name, _options(accesses, placement))

    def _placement(self, context: SearchContext, accesses: Accesses, apart: Placement) -> Placement:
        """Return the best placement that is found; that of the iterative algorithm at least."""
        clock, contention = context.clock, self._freedom.contention
        best = accesses.off_chip()
        with context.until_interrupted(lambda: True):
            improvement = Improvement(accesses, self._freedom, apart)
            best = improvement.run(lambda: clock.is_over(SHARE))
            if self._exact and not clock.is_over(SHARE):
                limits = Limits(
                    seconds=(seconds := clock.seconds_left(SHARE)),
                    threads=context.options.workers,
                    seed=context.options.seed,
                    nodes=NODES if seconds is None else None,
                )
                found = PlacementProgram(accesses, self._freedom, apart).solve(limits)
                if found is not None:
                    best = min(
                        (best, found), key=lambda one: accesses.cost(one, contention=contention)
                    )
        return best


def _options(accesses: Accesses, placement: Placement) -> tuple[tuple[str, str], ...]:
    chosen = [accesses.parts[index].role for index in placement]
    return (
        ("homes", str(chosen.count(Role.HOME))),
        ("replicas", str(chosen.count(Role.REPLICA))),
        ("estimated_cycles", str(accesses.cost(placement))),
    )


def _largest_rival(accesses: Accesses, found: ConflictSet, placement: Placement) -> int | None:
    """Return the largest of what is kept among those that have no addresses together."""
    kept = [
        part
        for item in found.items
        if isinstance(item, CandidateResidency)
        and (part := accesses.serving(item.slice, item.memory, placement)) is not None
        and part.role is not Role.STREAM
    ]
    size = accesses.tables.blocks_of
    largest = max(
        kept, key=lambda part: (size(part.buffer, found.memory), part.index), default=None
    )
    return None if largest is None else largest.index


def _taken_down(accesses: Accesses, placement: Placement) -> OneAfterAnother:
    return _Writer(accesses, placement).written()


class _Writer:
    def __init__(self, accesses: Accesses, placement: Placement) -> None:
        self._accesses = accesses
        self._placement = placement
        self._written = OneAfterAnother(accesses.tables, accesses.dram)
        self._held: dict[tuple[BufferIdx, MemoryIdx], CandidateResidency] = {}
        self._homes = {
            part.buffer: part.memory
            for part in map(accesses.parts.__getitem__, placement)
            if part.role is Role.HOME
        }

    def written(self) -> OneAfterAnother:
        """Take all steps down."""
        for number, step in enumerate(self._accesses.steps):
            operands, overwritten = self._operands(number, step)
            results = self._written.run(step.task, step.pool, operands)
            for position, buffer in step.overwrites:
                if position in overwritten:
                    self._written.overwrite(step.task, operands[position], results[buffer])
            for buffer, result in results.items():
                self._send(buffer, result, step.memory)
        return self._written

    def _operands(self, number: int, step: Step) -> tuple[list[CandidateResidency], frozenset[int]]:
        """Fetch what is not there; return what serves each read, and which results take over."""
        problem = self._accesses.tables.problem
        reads = problem.tasks[step.task].reads
        served: dict[int, CandidateResidency] = {}
        overwritten: set[int] = set()
        for buffer in dict.fromkeys(problem.slices[read].buffer for read in reads):
            part = self._accesses.serving(buffer, step.memory, self._placement)
            if part is None:
                continue
            served.update(self._fetched(number, part))
            overwritten |= {position for at, position in part.given if at == number}
        return [served[position] for position in range(len(reads))], frozenset(overwritten)

    def _fetched(self, number: int, part: Part) -> Mapping[int, CandidateResidency]:
        """Return what serves each read of the buffer of a part."""
        buffer, memory = part.buffer, part.memory
        home = self._homes.get(buffer)
        if home is not None and (buffer, home) not in self._held:
            self._held[buffer, home] = self._written.load(buffer, home)
        source = self._written.in_dram(buffer)
        if part.source is not None and part.source != self._accesses.dram:
            source = self._held[buffer, part.source]
        if part.role is Role.STREAM and part.source is not None:
            slices = self._accesses.uses.streamed(number, buffer, part.source) or {}
            found = {
                one: self._written.copy(source, one, memory)
                for one in dict.fromkeys(slices.values())
            }
            return {position: found[one] for position, one in slices.items()}
        if (buffer, memory) not in self._held:
            self._held[buffer, memory] = self._written.copy(source, buffer, memory)
        return dict.fromkeys(
            self._accesses.uses.positions(number, buffer), self._held[buffer, memory]
        )

    def _send(self, buffer: BufferIdx, result: CandidateResidency, memory: MemoryIdx) -> None:
        """Bring a result home, and to DRAM if it has to be there."""
        home = self._homes.get(buffer)
        if home == memory:
            self._held[buffer, home] = result
        elif home is not None:
            self._held[buffer, home] = self._written.copy(result, buffer, home)
        one = self._accesses.variables.get(buffer)
        is_output = self._accesses.tables.problem.buffers[buffer].ends_in is not None
        if is_output or (one is not None and one.store in self._placement):
            self._written.store(result)
