"""Pins on addresses, on what stays and on ends, for solvers that know nothing of them.

Such a solver gets the problem without these pins, in which tasks read as a whole what has to lie as
a whole. Its plan is then settled, with the times that it has: of a resident buffer the first
residency stays, serves whatever others served, and these go with their transfers; addresses are
found anew around those that are pinned. Where that cannot be, or a task ends too late, there is no
plan.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from spmilp.errors import DoesNotFitError
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import BufferPin, Pins
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.extraction import TimedPlan
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.units import Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx

SHARE_TO_FIND = 0.85
"""Share of the time for the search; the rest is for settling its plan."""


def settled_search(
    search: Callable[[SearchContext], SolverResult], context: SearchContext
) -> SolverResult:
    """Return a plan that keeps to all pins, if the one that a solver finds can be settled."""
    if context.misfit:
        return context.infeasible(context.misfit)
    loose = _Loose(context.problem)
    limit = context.clock.seconds_left(SHARE_TO_FIND)
    options = replace(context.options, time_limit=limit, on_progress=None, gap=0.0)
    found = search(SearchContext(loose.problem, options, now=context.clock.now))
    context.interrupted |= found.interrupted
    if found.plan is None:
        return context.unknown(found.reason)
    settling = _Settling(context.problem, loose.plan(found.plan))
    plan = settling.plan(context.clock)
    if plan is None:
        return context.unknown(f"the plan found cannot be settled: {settling.reason}")
    broken = context.violations(plan)
    if broken:
        return context.unknown(f"the plan found breaks a pin: {broken[0].message}")
    context.report(context.values(plan)[0], context.bound.value, plan.solver)
    return context.found(plan)


def timed_plan(problem: Problem, plan: Plan) -> TimedPlan:
    """Return a plan without its addresses, with the pairs in place that share bytes in it."""
    return _Settling(problem, plan).timed()


class _Loose:
    """A problem in which tasks read as a whole what is pinned to lie as a whole."""

    def __init__(self, problem: Problem) -> None:
        self._whole = {pin.buffer for pin in problem.pins.buffers if pin.whole}
        self._slices = problem.slices
        self._tasks = problem.tasks
        self.problem = replace(
            problem,
            tasks=tuple(map(self._reading_wholes, problem.tasks)),
            pins=Pins(
                buffers=tuple(
                    BufferPin(buffer=pin.buffer, memories=pin.memories)
                    for pin in problem.pins.buffers
                )
            ),
        )

    def plan(self, plan: Plan) -> Plan:
        """Return a plan in which each read has the residency that serves it."""
        placements = []
        for placement, task in zip(plan.placements, self.problem.tasks, strict=True):
            serving = dict(zip(task.reads, placement.reads, strict=True))
            reads = (serving[self._read(read)] for read in self._tasks[task.index].reads)
            placements.append(replace(placement, reads=tuple(reads)))
        return replace(plan, placements=tuple(placements))

    def _read(self, slice_: SliceIdx) -> SliceIdx:
        buffer = self._slices[slice_].buffer
        return buffer if buffer in self._whole else slice_

    def _reading_wholes(self, task: Task) -> Task:
        reads = tuple(dict.fromkeys(map(self._read, task.reads)))
        if reads == task.reads:
            return task
        pairs = tuple((read, new) for read, new in task.in_place if self._read(read) == read)
        return replace(task, reads=reads, in_place=pairs)


@dataclass(slots=True)
class _Parts:
    """A plan's tables while they change; what has gone is ``None``."""

    placements: list[Placement]
    residencies: list[Residency | None]
    transfers: list[Transfer | None]


class _Settling:
    def __init__(self, problem: Problem, plan: Plan) -> None:
        self._problem = problem
        self._found = plan
        self.reason = ""
        self._parts = _Parts([*plan.placements], [*plan.residencies], [*plan.transfers])

    def plan(self, clock: Clock) -> Plan | None:
        """Return the plan settled; ``None`` where that cannot be, for a ``reason``."""
        for pin in self._problem.pins.buffers:
            for memory in pin.memories if pin.whole else ():
                if not self._lies_as_a_whole(pin, memory):
                    name = self._problem.machine.memories[memory].name
                    buffer = self._problem.buffers[pin.buffer].name
                    self.reason = f"no single copy of {buffer} serves all that read it in {name}"
                    return None
        self.reason = "no addresses are left beside those that are pinned"
        tables, timed = ProblemTables(self._problem), self.timed()
        low = self._problem.objective.first is Quantity.PEAK_SPM
        try:
            addresses = find_addresses(tables, timed, low=low, clock=clock)
        except DoesNotFitError:
            return None
        if isinstance(addresses, ConflictSet):
            return None
        measures = measure(self._problem, timed.placements, addresses.residencies, timed.transfers)
        return replace(
            self._found,
            placements=timed.placements,
            residencies=addresses.residencies,
            transfers=timed.transfers,
            tensors=addresses.tensors,
            claim=claim_of(measures, 0, "settled"),
        )

    def _lies_as_a_whole(self, pin: BufferPin, memory: MemoryIdx) -> bool:
        """Let the first residency of the whole buffer serve all, where others may not be."""
        here = [one for one in self._parts.residencies if one and self._is_of(one, pin, memory)]
        whole = sorted(
            (one for one in here if one.slice == pin.buffer),
            key=lambda one: (self._valid(one), one.index),
        )
        if not here:
            return not pin.resident
        if not whole:
            return False
        if not pin.resident and len(whole) == len(here):
            return True
        kept, until = whole[0].index, max(one.end for one in here)
        for one in here:
            if one.index != kept and not self._serves_for(kept, one):
                return False
        if pin.resident:
            until = max(until, self._last_read(pin))
        self._parts.residencies[kept] = replace(whole[0], end=until)
        return True

    def _is_of(self, one: Residency, pin: BufferPin, memory: MemoryIdx) -> bool:
        if one.slice is None or one.memory != memory:
            return False
        return self._problem.slices[one.slice].buffer == pin.buffer

    def _valid(self, one: Residency) -> Cycles:
        if one.filled_by_task is not None:
            return self._parts.placements[one.filled_by_task].end
        filler = one.filled_by_transfer
        move = None if filler is None else self._parts.transfers[filler]
        return one.start if move is None else move.end

    def _last_read(self, pin: BufferPin) -> Cycles:
        slices = self._problem.slices
        return max(
            placement.end
            for placement in self._parts.placements
            for read in self._problem.tasks[placement.task].reads
            if slices[read].buffer == pin.buffer
        )

    def _serves_for(self, kept: ResidencyIdx, other: Residency) -> bool:
        """Let one residency serve what another one served, which goes with its transfer."""
        parts, gone = self._parts, other.index
        if other.filled_by_transfer is None:
            return False
        move = parts.transfers[other.filled_by_transfer]
        first = parts.residencies[kept]
        if move is None or first is None or len(move.destinations) > 1:
            return False
        from_when = self._valid(first)
        for placement in parts.placements:
            if gone in placement.reads:
                if placement.start < from_when:
                    return False
                reads = (kept if read == gone else read for read in placement.reads)
                parts.placements[placement.task] = replace(placement, reads=tuple(reads))
        for later in parts.transfers:
            if later is not None and later.source == gone:
                if later.start < from_when:
                    return False
                parts.transfers[later.index] = replace(later, source=kept)
        parts.transfers[move.index] = parts.residencies[gone] = None
        return True

    def timed(self) -> TimedPlan:
        """Return what is left, numbered anew."""
        residencies = [one for one in self._parts.residencies if one is not None]
        transfers = [one for one in self._parts.transfers if one is not None]
        place = {one.index: number for number, one in enumerate(residencies)}
        move = {one.index: number for number, one in enumerate(transfers)}
        placements = tuple(
            replace(
                one,
                reads=tuple(place[read] for read in one.reads),
                writes=tuple(place[written] for written in one.writes),
                scratch=None if one.scratch is None else place[one.scratch],
            )
            for one in self._parts.placements
        )
        pairs = tuple((task, place[old], place[new]) for task, old, new in self._pairs())
        return TimedPlan(
            placements=placements,
            residencies=tuple(
                replace(
                    one,
                    index=place[one.index],
                    filled_by_transfer=None
                    if one.filled_by_transfer is None
                    else move[one.filled_by_transfer],
                )
                for one in residencies
            ),
            transfers=tuple(
                replace(
                    one,
                    index=move[one.index],
                    source=place[one.source],
                    destinations=tuple(place[end] for end in one.destinations),
                )
                for one in transfers
            ),
            items=tuple(range(len(residencies))),
            pairs=pairs,
        )

    def _pairs(self) -> Iterator[tuple[TaskIdx, ResidencyIdx, ResidencyIdx]]:
        """Yield the pairs in place that share bytes, and still may."""
        for placement in self._parts.placements:
            task = self._problem.tasks[placement.task]
            for read, written in task.in_place:
                old = self._parts.residencies[placement.reads[task.reads.index(read)]]
                new = self._parts.residencies[placement.writes[task.writes.index(written)]]
                if old is None or new is None or (old.memory, old.slice) != (new.memory, read):
                    continue
                if old.offset == new.offset and new.start < old.end <= placement.end:
                    yield task.index, old.index, new.index
