"""What a plan decides, without its times and addresses, and which constants become permanent."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf, lcm

from spmilp.errors import SpmilpError
from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import routes_of, transfer_cycles
from spmilp.plan.memory import home_of
from spmilp.plan.plan import Plan, Residency, Stream, Transfer
from spmilp.plan.states import left_by_others
from spmilp.problem.problem import Problem
from spmilp.problem.several import members_of, owners
from spmilp.solvers.modulo.reservations import Busy
from spmilp.units import Cycles, MemoryIdx, ResidencyIdx, SliceIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A task or a transfer of the plan, by its place among tasks and then transfers.

    It holds what it is ``busy`` with; of a transfer's channels each is one way, in their order. It
    reads until ``reads_for`` cycles after its start, and has filled after ``cycles``.
    """

    number: int
    cycles: Cycles
    reads_for: Cycles
    busy: tuple[tuple[Busy, ...], ...]
    reads: tuple[ResidencyIdx, ...]
    fills: tuple[ResidencyIdx, ...]
    after: tuple[int, ...]


class Decisions:
    """A plan's activities in the order of their starts, and its residencies.

    Of several networks those that are due first come first.

    ``home`` is the tensor of each residency at its place. ``left`` has for residencies of states
    what they are of the inference before. ``loads`` has for each residency that a constant could
    have for ever the transfer that fills it.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        machine = problem.machine
        self.home = [home_of(problem, each) for each in plan.residencies]
        rates = [*(one.rate for one in machine.engines), *(one.rate for one in machine.links)]
        parts = lcm(*(rate.denominator for rate in rates))
        first, cores = [len(machine.cores)], len(machine.cores)
        for engine in machine.engines:
            first.append(first[-1] + engine.channels)
        self._channels, self._links, self._parts = first, first[-1], parts
        self.capacity = [1] * self._links + [int(link.rate * parts) for link in machine.links]
        self.tasks = cores and len(problem.tasks)
        starts = [*(run.start for run in plan.placements), *(move.start for move in plan.transfers)]
        due = self._due()
        self.order = sorted(range(len(starts)), key=lambda n: (due[n], starts[n], n))
        self.activities = [*map(self._task, range(self.tasks))]
        self.activities += [self._transfer(number) for number in range(len(plan.transfers))]
        self.given = [
            each.index
            for each in plan.residencies
            if self.home[each.index] is None
            and each.slice is not None
            and each.filled_by_task is None
            and each.filled_by_transfer is None
        ]
        for index in self.given:
            buffer = problem.buffers[problem.slices[plan.residencies[index].slice or 0].buffer]
            if not buffer.is_constant:
                raise SpmilpError(
                    f"buffer {buffer.name} starts in a scratchpad and is no weight: the data of a "
                    "stream comes from DRAM; let it start there"
                )
        self.left = left_by_others(problem, plan, Stream(period=1))
        self.loads: dict[ResidencyIdx, int] = {
            index: move.index
            for move in plan.transfers
            if problem.buffers[problem.slices[move.slice].buffer].is_constant
            for index in move.destinations
            if machine.memories[plan.residencies[index].memory].kind is not MemoryKind.DRAM
        }

    def _due(self) -> list[float]:
        """Return the deadline of each activity's network, infinite where there is none."""
        of_tasks, of_buffers = owners(self.problem)
        members, slices = members_of(self.problem), self.problem.slices
        owner = [*of_tasks, *(of_buffers[slices[m.slice].buffer] for m in self.plan.transfers)]
        deadlines = (None if one is None else members[one].deadline for one in owner)
        return [inf if deadline is None else deadline for deadline in deadlines]

    def _task(self, number: int) -> Activity:
        task, run = self.problem.tasks[number], self.plan.placements[number]
        cycles, scratch = run.end - run.start, () if run.scratch is None else (run.scratch,)
        return Activity(
            number=number,
            cycles=cycles,
            reads_for=cycles,
            busy=((Busy(run.core, 0, cycles, 1),),),
            reads=run.reads,
            fills=(*run.writes, *scratch),
            after=task.after,
        )

    def _transfer(self, number: int) -> Activity:
        move, machine = self.plan.transfers[number], self.problem.machine
        engine = machine.engines[move.engine]
        sent, end = move.sent - move.start, move.end - move.start
        rate = min(engine.rate, *(machine.links[link].rate for link in move.route), engine.rate)
        amount = int(rate * self._parts)
        links = [Busy(self._links + link, engine.setup, sent, amount) for link in move.route]
        free = engine.busy_until(move.sent, move.end) - move.start
        channels = range(self._channels[move.engine], self._channels[move.engine + 1])
        return Activity(
            number=self.tasks + number,
            cycles=end,
            reads_for=sent,
            busy=tuple((Busy(channel, 0, free, 1), *links) for channel in channels),
            reads=(move.source,),
            fills=move.destinations,
            after=(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permanence:
    """Which residencies are permanent, and which one stands for those of the same slice.

    ``stands_for`` has the residency that serves in place of each one that is left out; ``once`` the
    transfers of the prologue; ``gone`` those that nobody needs; ``staged`` residencies of the
    prologue alone. ``states`` has for residencies of states that stay on the chip what an inference
    leaves in their memory for the next one.
    """

    permanent: frozenset[ResidencyIdx]
    stands_for: Mapping[ResidencyIdx, ResidencyIdx]
    once: frozenset[int]
    gone: frozenset[int]
    staged: frozenset[ResidencyIdx]
    states: Mapping[ResidencyIdx, ResidencyIdx] = field(default_factory=dict)


def with_states_on_chip(decisions: Decisions, kept: Permanence) -> Permanence:
    """Return the same with states that stay on the chip, in memories where they are written anyway.

    They are loaded once, in the prologue, and stored no more unless their own inference reads that.
    Those that some read in another memory come and go through DRAM.
    """
    problem, plan = decisions.problem, decisions.plan
    states, stands_for, gone = dict[ResidencyIdx, ResidencyIdx](), dict(kept.stands_for), set[int]()
    read = {move.source for move in plan.transfers}
    written = {
        _key(plan, row.index): row.index
        for row in reversed(plan.residencies)
        if row.slice is not None and decisions.home[row.index] is None
    }
    for buffer, output in problem.states().items():
        moves = [
            move
            for move in plan.transfers
            if problem.slices[move.slice].buffer == buffer
            and decisions.home[move.source] is not None
        ]
        ends = [end for move in moves for end in move.destinations]
        left = [written.get((output, plan.residencies[end].memory)) for end in ends]
        if None in left or any(len(m.destinations) > 1 or m.slice != buffer for m in moves):
            continue
        first = dict[ResidencyIdx, ResidencyIdx]()
        for move, end, other in zip(moves, ends, left, strict=True):
            if other is not None and first.setdefault(other, end) == end:
                states[end] = other
            elif other is not None:
                stands_for[end] = first[other]
                gone.add(move.index)
        gone |= {
            move.index
            for move in plan.transfers
            if problem.slices[move.slice].buffer == output
            and all(decisions.home[end] is not None for end in move.destinations)
            and read.isdisjoint(move.destinations)
        }
    loads = {plan.residencies[one].filled_by_transfer for one in states}
    return replace(
        kept,
        stands_for=stands_for,
        once=kept.once | {load for load in loads if load is not None},
        gone=kept.gone | gone,
        states=states,
    )


def with_states_sent(problem: Problem, plan: Plan) -> Plan:
    """Return a plan that at its end also sends states to the memories in which they are read.

    So they can stay on the chip. What it adds has no regard to addresses and channels: the plan is
    there for what it decides. It is the same plan where nothing is to be sent.
    """
    machine, rows, moves = problem.machine, list(plan.residencies), list(plan.transfers)
    routes, now = routes_of(machine), plan.claim.makespan
    drams = {dram.index for dram in machine.drams}
    for buffer, output in problem.states().items():
        there = {row.memory: row.index for row in reversed(rows) if row.slice == output}
        ends = [one for move in plan.transfers if move.slice == buffer for one in move.destinations]
        for memory in sorted({rows[one].memory for one in ends} - there.keys() - drams):
            some = (routes.staging_path(one, memory) for one in sorted(there.keys() - drams))
            paths = [path for path in some if path is not None and drams.isdisjoint(path)]
            for here, on in pairwise(sorted(paths, key=len)[0] if paths else ()):
                if on in there:
                    continue
                size, route = problem.slices[output].bytes, routes.between(here, on)
                assert route is not None
                able = [machine.engines[one] for one in routes.engines_for(here, on)]
                engine = min(able, key=lambda one: transfer_cycles(one, route, size).arrived)
                cycles = transfer_cycles(engine, route, size)
                move = Transfer(
                    index=len(moves),
                    slice=output,
                    source=there[here],
                    destinations=(len(rows),),
                    engine=engine.index,
                    channel=0,
                    start=now,
                    sent=now + cycles.sent,
                    end=now + cycles.arrived,
                    route=route.links,
                )
                row = Residency(
                    index=len(rows),
                    slice=output,
                    memory=on,
                    offset=0,
                    bytes=size,
                    start=now,
                    end=move.end,
                    filled_by_transfer=move.index,
                )
                now, there[on] = move.end, row.index
                moves.append(move)
                rows.append(row)
    if len(rows) == len(plan.residencies):
        return plan
    return replace(plan, residencies=tuple(rows), transfers=tuple(moves))


def permanence(decisions: Decisions, wanted: Collection[ResidencyIdx]) -> Permanence:
    """Return what follows if some constants are to be there for ever.

    A multicast stays in the loop unless all that it fills is permanent. What stages constants in
    the loop for nobody else is needed in the prologue alone.
    """
    plan, loads = decisions.plan, decisions.loads
    moves = {loads[one] for one in wanted}
    moves = {m for m in moves if all(d in wanted for d in plan.transfers[m].destinations)}
    kept: dict[tuple[SliceIdx, MemoryIdx], ResidencyIdx] = {}
    stands_for, gone = dict[ResidencyIdx, ResidencyIdx](), set[int]()
    permanent = set[ResidencyIdx]()
    for move in sorted(moves, key=lambda number: plan.transfers[number].start):
        ends = plan.transfers[move].destinations
        known = [_key(plan, end) in kept for end in ends]
        if all(known):
            gone.add(move)
            stands_for |= {end: kept[_key(plan, end)] for end in ends}
            continue
        for end in ends:
            kept.setdefault(_key(plan, end), end)
            permanent.add(end)
    once, staged = moves - gone, set[ResidencyIdx]()
    readers: defaultdict[ResidencyIdx, set[int]] = defaultdict(set)
    for each in decisions.activities:
        for read in each.reads:
            readers[read].add(each.number - decisions.tasks)
    # What only the prologue, or nobody, reads any more happens there, or not at all.
    for index, load in sorted(loads.items(), key=lambda item: -plan.transfers[item[1]].start):
        left = readers[index] - gone
        if index in permanent or index in stands_for or load in once | gone:
            continue
        if len(plan.transfers[load].destinations) == 1 and left <= once:
            (once if left else gone).add(load)
            staged |= {index} if left else set()
    # What stages for the prologue and for the loop comes twice: the prologue needs its own.
    served = permanent | staged | set(stands_for)
    twice = {plan.transfers[move].source for move in once} & loads.keys() - served
    if twice:
        return permanence(
            decisions, [o for o in wanted if plan.transfers[loads[o]].source not in twice]
        )
    return Permanence(
        permanent=frozenset(permanent),
        stands_for=stands_for,
        once=frozenset(once),
        gone=frozenset(gone),
        staged=frozenset(staged),
    )


def _key(plan: Plan, index: ResidencyIdx) -> tuple[SliceIdx, MemoryIdx]:
    one = plan.residencies[index]
    assert one.slice is not None
    return one.slice, one.memory
