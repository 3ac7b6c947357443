"""Pins on addresses, on what stays and on ends, for solvers that know nothing of them.

Such a solver gets the problem without these pins, in which tasks read as a whole what has to lie as
a whole. Its plan is then settled, with the times that it has: of a buffer that has to lie as a
whole the first residency serves whatever others served, and these go with their transfers.
Addresses are found anew around those that are pinned. Where that cannot be, or a task ends too
late, there is no plan.
"""

from collections.abc import Callable
from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import BufferPin, Pins
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateResidency, Reading
from spmilp.solvers.exact.formulation.extraction import Decisions, decisions_of, extract
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx

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
    found = search(SearchContext(loose.problem, options))
    context.interrupted |= found.interrupted
    if found.plan is None:
        return context.unknown(found.reason)
    plan = _settled(context, loose.plan(found.plan))
    if isinstance(plan, str):
        return context.unknown(f"the plan found cannot be settled: {plan}")
    broken = context.violations(plan)
    if broken:
        return context.unknown(f"the plan found breaks a pin: {broken[0].message}")
    context.report(context.values(plan)[0], context.bound.value, plan.solver)
    return context.found(plan)


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


def _settled(context: SearchContext, plan: Plan) -> Plan | str:
    """Return a plan that lies as its pins want, at its times; or why there is none."""
    problem = context.problem
    tables, reading = ProblemTables(problem), Reading(problem, plan)
    decisions = decisions_of(tables, reading)
    for pin in problem.pins.buffers:
        for memory in pin.memories if pin.whole else ():
            whole = _as_a_whole(tables, reading, decisions, pin, memory)
            if whole is None:
                name = problem.machine.memories[memory].name
                buffer = problem.buffers[pin.buffer].name
                return f"no single copy of {buffer} serves all that read it in {name}"
            decisions = whole
    # What is pinned to an address takes over no other bytes.
    fixed = {pin.buffer for pin in problem.pins.buffers if pin.address is not None}
    pairs = (one for one in decisions.in_place if not fixed & {one[1].slice, one[2].slice})
    timed = extract(tables, replace(decisions, in_place=tuple(pairs)))
    low = problem.objective.first is Quantity.PEAK_SPM
    found = find_addresses(tables, timed, low=low, clock=context.clock)
    if isinstance(found, ConflictSet):
        return "no addresses are left beside those that are pinned"
    bound = Bound("settled", problem.objective.first, 0)
    return replace(found.plan(tables, timed, bound, plan.solver), options=plan.options)


def _as_a_whole(
    tables: ProblemTables, reading: Reading, decisions: Decisions, pin: BufferPin, memory: MemoryIdx
) -> Decisions | None:
    """Let the first residency of the whole buffer serve all, where others may not be."""
    slices, fills = tables.problem.slices, decisions.fills
    here = [k for k in fills if k.memory == memory and slices[k.slice].buffer == pin.buffer]
    kept = CandidateResidency(pin.buffer, memory, 0)
    if not here:
        return None if pin.resident else decisions
    if kept not in fills:
        return None
    if not pin.resident and all(key.slice == pin.buffer for key in here):
        return decisions
    gone = {*here} - {kept}
    valid = next(reading.valid(one) for one, key in reading.key.items() if key == kept)
    uses = [
        decisions.runs[task].start for (task, _), key in decisions.served.items() if key in gone
    ]
    uses += [fill.start for fill in fills.values() if fill.source in gone]
    tied = any(fill.root in gone and key not in gone for key, fill in fills.items())
    if tied or any(fills[key].source is None for key in gone) or min(uses, default=valid) < valid:
        return None
    return replace(
        decisions,
        fills={
            key: replace(fill, source=kept if fill.source in gone else fill.source)
            for key, fill in fills.items()
            if key not in gone
        },
        served={use: kept if key in gone else key for use, key in decisions.served.items()},
        in_place=tuple(one for one in decisions.in_place if one[1] not in gone),
    )
