"""A stream of a plan's inferences: the shortest period that is found, addresses and a prologue."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.packing import Item, PackingOptions, PackingProblem, pack
from spmilp.plan.latencies import shortfall
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import MOST_INSTANCES, Plan, Residency, Stream, Transfer
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock, OutOfTimeError, Step
from spmilp.solvers.common.context import rows_of
from spmilp.solvers.modulo.decisions import (
    Decisions,
    Permanence,
    permanence,
    with_states_on_chip,
    with_states_sent,
)
from spmilp.solvers.modulo.schedule import (
    Loop,
    ModuloSchedule,
    loop_for,
    loop_of,
    modulo_schedule,
)
from spmilp.solvers.schedule.kernels.tables import alignment_of
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, align_up

SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.2, 0.0)
"""Of what other data leaves of a memory, parts that constants may take for ever."""

QUICK_SHARES = (1.0, 0.8, 0.5)
"""Those that are tried where tiles are compared."""

LONGER = tuple(1.01**step for step in range(163))
"""Periods that are tried, as multiples of the least one that resources allow."""

SHARE_TO_BEGIN = 0.3
"""Of the time, at most for what plans decide and what may be permanent; then periods are tried."""

GAIN = 0.995
"""Periods of other tiles are looked at if they are at most so many times as long."""

NODES = 1_000_000
"""Items times nodes of the search for the addresses in one memory."""


def stream_of(problem: Problem, plan: Plan) -> Plan:
    """Return a stream of a valid plan's inferences with as short a period as is found."""
    (*_, best) = streams_of(problem, (plan,), Clock(None))
    return best


def streams_of(
    problem: Problem,
    plans: Iterable[Plan],
    clock: Clock,
    enough: Cycles = 1,
    known: Plan | None = None,
) -> Iterator[Plan]:
    """Yield streams of valid plans' inferences, each better than the one before, a known one first.

    A shorter period is better until it is ``enough``; then a shorter latency is. Before both comes
    that no network misses its deadline. Cores and transfers stay as they are, and so does their
    order, but for networks that are due first. Constants that fit beside all other data are
    permanent, those that are loaded most often first. The makespan of a plan is a period in nearly
    any case: with that, and nothing permanent, its inferences follow one another. Raises a
    ``SpmilpError`` where they cannot, and no other stream is found.
    """

    def is_better(one: Plan, other: Plan) -> bool:
        return worth_of(problem, one, enough) < worth_of(problem, other, enough)

    best, overlaps, reason = known, known is not None, "there is no plan"
    if known is not None:
        yield known
    begun, failures = list[_Bisection](), Counter[Decisions | float]()
    for plan in plans:
        if best is not None and clock.is_over(SHARE_TO_BEGIN):
            break
        decisions = Decisions(problem, plan)
        if best is None or worth_of(problem, best, enough)[0] > 0:
            found, reason = _one_after_another(decisions)
            if found is not None and (best is None or is_better(found, best)):
                best = found
                yield best
        for way in _ways(decisions, clock, enough):
            begun.append(way)
            if clock.is_over(SHARE_TO_BEGIN):
                break
    while begun:
        # What has failed least, then what resources allow the shortest period.
        one = min(begun, key=lambda o: (failures[o.decisions] + failures[o.share], o.loop.least))
        late, *worth = (1, 0) if best is None else worth_of(problem, best, enough)
        longest = one.decisions.plan.claim.makespan if late else worth[0]
        one.periods = [period for period in one.periods if period <= longest]
        if not one.periods:
            begun.remove(one)
            continue
        activities = len(one.decisions.order)
        # It ends with the time, but for addresses and the check.
        if not clock.has_seconds(clock.pace.seconds(Step.CHECK, rows_of(one.decisions.plan))):
            break
        # Until something overlaps, rather one that is long than one that fails.
        middle = len(one.periods) // 2 if overlaps else 3 * len(one.periods) // 4
        try:
            with clock.pace.measured(Step.OVERLAP, activities):
                found = _overlapped(one, one.periods[middle], clock)
        except OutOfTimeError:
            break
        failures.update((one.decisions, one.share) if found is None else ())
        # Latencies of periods that are short enough say little about each other.
        shorter, longer = one.periods[:middle], one.periods[middle + 1 :]
        one.periods = longer if found is None else shorter + longer * (one.periods[middle] < enough)
        if found is not None and (best is None or is_better(found, best)):
            best, overlaps = found, True
            yield best
    if best is None:
        raise SpmilpError(
            f"the plan of {problem.name} makes no stream: {reason}; let weights that start in "
            "a scratchpad start in DRAM, or give the memories more bytes"
        )


def quick_stream(
    problem: Problem,
    plans: Iterable[Plan],
    clock: Clock,
    enough: Cycles,
    known: Sequence[Cycles] | None,
) -> tuple[Plan, Sequence[Cycles]] | None:
    """Return a stream that is better than one that is known, and its worth, if that is soon found.

    What does not overlap with a period a little shorter than the known one is given up at once.
    """
    best, worth = None, known
    decided = (Decisions(problem, plan) for plan in plans)
    ways = [way for one in decided for way in _ways(one, clock, enough, QUICK_SHARES)]
    for one in sorted(ways, key=lambda way: way.loop.least):
        longest = float(one.decisions.plan.claim.makespan)
        if worth is not None and worth[0] == 0:
            longest = GAIN * worth[1]
        periods, is_better = [period for period in one.periods if period <= longest], worth is None
        while periods:
            middle = len(periods) // 2 if is_better else len(periods) - 1
            with clock.pace.measured(Step.OVERLAP, len(one.decisions.order)):
                found = _overlapped(one, periods[middle], clock)
            now = None if found is None else worth_of(problem, found, enough)
            if now is not None and (worth is None or now < list(worth)):
                best, worth, is_better = found, now, True
                periods = periods[:middle]
            elif is_better:
                periods = periods[middle + 1 :]
            else:
                break
    return None if best is None or worth is None else (best, worth)


def _ways(
    decisions: Decisions, clock: Clock, enough: Cycles, shares: Sequence[float] = SHARES
) -> "Iterator[_Bisection]":
    """Yield what may be permanent, with states on the chip and in DRAM, each way once."""
    before = set[tuple[frozenset[ResidencyIdx], bool, bool]]()
    problem, plan = decisions.problem, decisions.plan
    sent = with_states_sent(problem, plan) if problem.states() else plan
    both = [decisions] if sent is plan else [Decisions(problem, sent), decisions]
    for share in shares:
        for one in both:
            clock.pace.count(Step.SCHEDULE, len(one.order))
            through_dram = permanence(one, list(_wanted(one, share)))
            for kept in (with_states_on_chip(one, through_dram), through_dram):
                way = kept.permanent, bool(kept.states), one is decisions
                if way not in before and (kept.states or one is decisions):
                    loop = loop_for(one, kept)
                    periods = {max(enough, loop.least), *(int(loop.least * by) for by in LONGER)}
                    yield _Bisection(share, one, kept, loop, sorted(periods))
                before.add(way)


@dataclass(slots=True, eq=False)
class _Bisection:
    """Periods left to try with a plan's decisions and a share of constants that are permanent.

    Longer ones nearly always work where shorter ones do.
    """

    share: float
    decisions: Decisions
    kept: Permanence
    loop: Loop
    periods: list[Cycles]


def worth_of(problem: Problem, plan: Plan, enough: Cycles) -> list[Cycles]:
    """Return by how much deadlines are missed, then the period, and what counts less."""
    period = plan.claim.of(Quantity.PERIOD)
    return [shortfall(problem, plan), max(enough, period), plan.claim.makespan, period]


def _overlapped(one: _Bisection, period: Cycles, clock: Clock) -> Plan | None:
    """Return a valid stream of a period; ``None`` where none is found."""
    clock.go_on()
    timed = modulo_schedule(one.loop, period)
    return None if timed is None else assembled(one.decisions, one.kept, timed)


def assembled(decisions: Decisions, kept: Permanence, timed: ModuloSchedule) -> Plan | None:
    """Return the valid stream that has these times; ``None`` where no addresses are found."""
    found = _Assembly(decisions, kept, timed).plan()
    return None if found is None or check(decisions.problem, found) else found


def own_times(decisions: Decisions, kept: Permanence, period: Cycles) -> ModuloSchedule:
    """Return the plan's own times for a period; what nobody reads is not loaded."""
    plan, loop = decisions.plan, loop_of(decisions, kept)
    starts = [*(run.start for run in plan.placements), *(move.start for move in plan.transfers)]
    ways = [*(0 for _ in plan.placements), *(move.channel for move in plan.transfers)]
    return ModuloSchedule(
        period=period,
        start={each.number: starts[each.number] for each in loop},
        way={each.number: ways[each.number] for each in loop},
    )


def _one_after_another(decisions: Decisions) -> tuple[Plan | None, str]:
    """Return a stream of the plan's own times, or why there is none.

    Its addresses are the plan's own, if they serve: weights that start in a scratchpad stay there.
    """
    kept, reason = permanence(decisions, ()), ""
    timed = own_times(decisions, kept, decisions.plan.claim.makespan)
    assembly = _Assembly(decisions, kept, timed)
    for keeps_addresses in (True, False):
        found = assembly.plan(keeps_addresses=keeps_addresses)
        violations = () if found is None else check(decisions.problem, found)
        if found is not None and not violations:
            return found, ""
        reason = reason or next((one.message for one in violations), "its data has no room")
    return None, reason


def _wanted(decisions: Decisions, share: float) -> Iterator[ResidencyIdx]:
    """Yield residencies of constants to be permanent, as many as a share of the room holds."""
    plan, machine = decisions.plan, decisions.problem.machine
    chosen: set[ResidencyIdx] = set()
    rows: defaultdict[MemoryIdx, list[Residency]] = defaultdict(list)
    for each in plan.residencies:
        rows[each.memory].append(each)
    # Scratchpads first: who has all there needs it in a shared memory no more.
    for memory in sorted(machine.memories, key=lambda one: one.kind is not MemoryKind.SPM):
        if memory.kind is MemoryKind.DRAM or memory.size is None or not rows[memory.index]:
            continue
        groups: defaultdict[SliceIdx, list[ResidencyIdx]] = defaultdict(list)
        others = []
        for each in rows[memory.index]:
            if each.index in decisions.loads and each.slice is not None:
                groups[each.slice].append(each.index)
            else:
                others.append(each)
        taken = sum(one.end - one.start for one in memory.reserved)
        room = share * (memory.size - taken - max(live_bytes(others)[1], default=0))
        alignment, read = alignment_of(machine, memory.index), set[ResidencyIdx]()
        if memory.kind is not MemoryKind.SPM:
            acts = (
                a for a in decisions.activities if not a.fills or not chosen.issuperset(a.fills)
            )
            read = {r for a in acts for r in a.reads}
        # Of those that are loaded equally often some from each part of the inference.
        often: defaultdict[int, list[tuple[Bytes, list[ResidencyIdx]]]] = defaultdict(list)
        for slice_, some in sorted(groups.items()):
            if memory.kind is MemoryKind.SPM or any(one in read for one in some):
                size = align_up(decisions.problem.slices[slice_].bytes, alignment)
                often[-len(some)].append((size, some))
        for _, alike in sorted(often.items()):
            part = min(1.0, room / sum(size for size, _ in alike))
            due = 0.0
            for size, some in alike:
                due += part * size
                if size <= min(due, room):
                    room, due = room - size, due - size
                    chosen.update(some)
    yield from sorted(chosen)


@dataclass(slots=True)
class _Lifetime:
    """Cycles of an inference, or of the prologue, in which a residency is there."""

    start: Cycles
    end: Cycles


class _Assembly:
    """A plan from decisions and times: prologue, lifetimes, instances, addresses."""

    def __init__(self, decisions: Decisions, kept: Permanence, timed: ModuloSchedule) -> None:
        self._decisions, self._kept, self._timed = decisions, kept, timed
        self._plan, self._problem = decisions.plan, decisions.problem
        self._moves = self._prologue()
        self._begins = max((move.end for move in self._moves.values()), default=1)
        self._latency = max(
            (at + decisions.activities[number].cycles for number, at in timed.start.items()),
            default=1,
        )
        self._top = self._top_of_given()
        self._tensors = self._placed_tensors()

    def plan(self, *, keeps_addresses: bool = False) -> Plan | None:
        """Return the plan; ``None`` where residencies last too long, or have no addresses."""
        lives = self._lifetimes()
        period, machine, rows = self._timed.period, self._problem.machine, self._plan.residencies
        many = {one: -(-(life.end - life.start) // period) for one, life in lives.items()}
        rounded = {one: 4 if count == 3 else count for one, count in many.items()}
        if max([*rounded.values(), *map(len, self._tensors)], default=1) > MOST_INSTANCES:
            return None
        offsets: dict[ResidencyIdx, tuple[Bytes, ...]] = {}
        for memory in machine.memories:
            found = (
                {r: (row.offset,) for r in lives if (row := rows[r]).memory == memory.index}
                if keeps_addresses and memory.kind is not MemoryKind.DRAM
                else self._addresses(memory, lives, rounded)
            )
            if found is None:
                return None
            offsets |= found
        for one, left in self._kept.states.items():
            *before, last = offsets[left]
            offsets[one] = (last, *before)
        return self._assembled(lives, offsets)

    def _prologue(self) -> dict[int, Transfer]:
        """Return the transfers of the prologue, one after another."""
        at, found = 1, dict[int, Transfer]()
        for number in sorted(self._kept.once, key=lambda one: self._plan.transfers[one].start):
            move = self._plan.transfers[number]
            later = at - move.start
            found[number] = replace(move, start=at, sent=move.sent + later, end=move.end + later)
            at = found[number].end
        return found

    def _lifetimes(self) -> dict[ResidencyIdx, _Lifetime]:
        """Return the cycles of each residency in the loop that has an address of its own."""
        lives: dict[ResidencyIdx, _Lifetime] = {}
        out = self._kept.permanent | self._kept.staged
        for number, at in self._timed.start.items():
            each = self._decisions.activities[number]
            for one in each.fills:
                lives[one] = _Lifetime(at, at + each.cycles)
        for number, at in self._timed.start.items():
            each = self._decisions.activities[number]
            for read in each.reads:
                if read in lives:
                    lives[read].end = max(lives[read].end, at + each.reads_for)
        # What an inference leaves is there when the first one begins, as its own state is.
        for one, left in self._kept.states.items():
            last = self._last_read(one) + self._timed.period
            lives[left].start = min(lives[left].start, self._timed.period)
            lives[left].end = max(lives[left].end, last)
        home = self._decisions.home
        return {one: life for one, life in lives.items() if home[one] is None and one not in out}

    def _last_read(self, state: ResidencyIdx) -> Cycles:
        """Return the cycle of an inference until which a state on the chip is read."""
        starts, stands_for = self._timed.start, self._kept.stands_for
        return max(
            starts[each.number] + each.reads_for
            for each in self._decisions.activities
            if each.number in starts and state in (stands_for.get(r, r) for r in each.reads)
        )

    def _addresses(
        self, memory: Memory, lives: dict[ResidencyIdx, _Lifetime], many: dict[ResidencyIdx, int]
    ) -> dict[ResidencyIdx, tuple[Bytes, ...]] | None:
        """Return the offsets of all instances in a memory, on a circle that is cut open.

        The prologue's cycles come behind the circle.
        """
        plan, period = self._plan, self._timed.period
        here = [one for one in lives if plan.residencies[one].memory == memory.index]
        stays = [
            r for r in sorted(self._kept.permanent) if plan.residencies[r].memory == memory.index
        ]
        passing = [
            r for r in sorted(self._kept.staged) if plan.residencies[r].memory == memory.index
        ]
        given = [r for r in self._decisions.given if plan.residencies[r].memory == memory.index]
        if not here and not stays and not passing:
            return {}
        if memory.kind is MemoryKind.DRAM:
            return self._above_all(memory.index, here, many)
        circle = period * lcm(*(many[one] for one in here), 1)
        alignment = alignment_of(self._problem.machine, memory.index)
        items, owners = list[Item](), list[ResidencyIdx]()

        def put(owner: ResidencyIdx, lifetimes: list[tuple[Cycles, Cycles]]) -> None:
            owners.append(owner)
            size = plan.residencies[owner].bytes
            at = plan.residencies[owner].offset if owner in given else None
            items.append(
                Item(
                    size=size,
                    lifetimes=tuple(lifetimes),
                    alignment=1 if at else alignment,
                    offset=at,
                )
            )

        for one in here:
            life = lives[one]
            for instance in range(many[one]):
                turns = list[tuple[Cycles, Cycles]]()
                for inference in range(instance, circle // period, many[one]):
                    start = (life.start + inference * period) % circle
                    end = start + life.end - life.start
                    turns.append((start, min(end, circle)))
                    turns += [(0, end - circle)] if end > circle else []
                if instance == many[one] - 1:
                    turns += [
                        (circle + self._loaded(state).start, circle + self._begins)
                        for state, left in self._kept.states.items()
                        if left == one
                    ]
                put(one, sorted(turns))
        for one in (*stays, *given):
            put(one, [(0, circle + self._begins)])
        for one in passing:
            start, end = self._passes(one)
            put(one, [(circle + start, circle + end)])
        found = pack(
            PackingProblem(
                items=tuple(items),
                capacity=memory.size,
                reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
            ),
            PackingOptions(node_limit=max(100, NODES // len(items)), conflict=False),
        ).offsets
        if found is None:
            return None
        offsets: defaultdict[ResidencyIdx, list[Bytes]] = defaultdict(list)
        for owner, offset in zip(owners, found, strict=True):
            offsets[owner].append(offset)
        return {owner: tuple(some) for owner, some in offsets.items()}

    def _above_all(
        self, dram: MemoryIdx, here: list[ResidencyIdx], many: dict[ResidencyIdx, int]
    ) -> dict[ResidencyIdx, tuple[Bytes, ...]]:
        """Return offsets of spills behind all else in a DRAM, no two at the same bytes."""
        alignment, found = lcm(64, alignment_of(self._problem.machine, dram)), {}
        top = align_up(self._top[dram], alignment)
        for one in here:
            size = align_up(self._plan.residencies[one].bytes, alignment)
            found[one] = tuple(top + n * size for n in range(many[one]))
            top += many[one] * size
        return found

    def _loaded(self, state: ResidencyIdx) -> Transfer:
        """Return what brings a state on the chip in the prologue."""
        return self._moves[self._plan.residencies[state].filled_by_transfer or 0]

    def _passes(self, staged: ResidencyIdx) -> tuple[Cycles, Cycles]:
        """Return the cycles of the prologue in which something passes through a memory."""
        ends = [move.sent for move in self._moves.values() if move.source == staged]
        filler = self._moves[self._decisions.loads[staged]]
        return filler.start, max([filler.end, *ends])

    def _instances_of_tensors(self) -> list[int]:
        """Return how many instances each DRAM tensor needs to be handed over in time."""
        problem, period = self._problem, self._timed.period
        first, last = dict[int, Cycles](), dict[int, Cycles]()
        for number, at in self._timed.start.items():
            each = self._decisions.activities[number]
            for one in each.fills:
                home = self._decisions.home[one]
                if home is not None:
                    first[home] = min(first.get(home, at), at)
            for one in each.reads:
                home = self._decisions.home[one]
                if home is not None:
                    last[home] = max(last.get(home, 0), at + each.reads_for)
        constants = {b.place.tensor for b in problem.buffers if b.place and b.is_constant}
        # What is left for the next inference is read a period later.
        left = {
            t.state: last.get(t.index, 0) + period for t in problem.tensors if t.state is not None
        }
        return [
            1
            if tensor.index in constants
            else -(-(max(last.get(index, 1), left[index]) - first.get(index, 0)) // period)
            if (index := tensor.index) in left
            else -(-(self._latency + period - first[tensor.index]) // period)
            if tensor.index in first
            else 1 + -(-last.get(tensor.index, 0) // period)
            for tensor in problem.tensors
        ]

    def _top_of_given(self) -> dict[MemoryIdx, Bytes]:
        """Return the end of each memory's reserved ranges and of what lies there at first."""
        top = {
            one.index: max((taken.end for taken in one.reserved), default=0)
            for one in self._problem.machine.memories
        }
        for one in map(self._plan.residencies.__getitem__, self._decisions.given):
            top[one.memory] = max(top[one.memory], one.offset + one.bytes)
        return top

    def _placed_tensors(self) -> list[tuple[Bytes, ...]]:
        """Return the addresses of all instances of each tensor, further ones behind all others."""
        machine, top = self._problem.machine, self._top
        for tensor, address in zip(self._problem.tensors, self._plan.tensors, strict=True):
            top[tensor.memory] = max(top[tensor.memory], address + tensor.bytes)
        found = []
        some = zip(
            self._problem.tensors, self._plan.tensors, self._instances_of_tensors(), strict=True
        )
        for tensor, address, many in some:
            step = lcm(64, alignment_of(machine, tensor.memory))
            more = []
            for _ in range(many - 1):
                at = align_up(top[tensor.memory], step) + address % step
                more.append(at)
                top[tensor.memory] = at + tensor.bytes
            found.append((address, *more))
        for tensor in self._problem.tensors:
            if tensor.state is not None:
                *before, last = found[tensor.state]
                found[tensor.index] = (last, *before)
        return found

    def _assembled(
        self, lives: dict[ResidencyIdx, _Lifetime], offsets: dict[ResidencyIdx, tuple[Bytes, ...]]
    ) -> Plan:
        plan, kept, timed, begins = self._plan, self._kept, self._timed, self._begins
        last, tasks, home = begins + self._latency, self._decisions.tasks, self._decisions.home
        used = {
            row
            for row, place in enumerate(home)
            if place is not None and plan.residencies[row].filled_by_transfer not in kept.gone
        }
        rows = sorted(
            {*lives, *kept.permanent, *kept.staged, *kept.states, *used, *self._decisions.given}
        )
        number = {row: i for i, row in enumerate(rows)}
        moves = sorted({*range(len(plan.transfers))} - kept.gone)
        of_move = {move: i for i, move in enumerate(moves)}

        def at(one: ResidencyIdx) -> ResidencyIdx:
            return number[kept.stands_for.get(one, one)]

        def residency(row: ResidencyIdx) -> Residency:
            was, found = plan.residencies[row], offsets.get(row, (plan.residencies[row].offset,))
            if (tensor := home[row]) is not None:
                found = (was.offset - plan.tensors[tensor] + self._tensors[tensor][0],)
                filler = was.filled_by_transfer
                start = 0 if filler is None else begins + timed.start[tasks + filler]
                life = start, last
            elif row in self._decisions.given:
                life = 0, last
            elif row in kept.permanent:
                life = self._moves[self._decisions.loads[row]].start, last
            elif row in kept.staged:
                life = self._passes(row)
            elif row in kept.states:
                life = self._loaded(row).start, begins + self._last_read(row)
            else:
                life = lives[row].start + begins, lives[row].end + begins
            return replace(
                was,
                index=number[row],
                offset=found[0],
                instances=found[1:],
                start=life[0],
                end=life[1],
                filled_by_transfer=None
                if was.filled_by_transfer is None
                else of_move[was.filled_by_transfer],
            )

        def transfer(move: int) -> Transfer:
            one = self._moves.get(move)
            if one is None:
                was, start = plan.transfers[move], begins + timed.start[tasks + move]
                later, channel = start - was.start, timed.way[tasks + move]
                one = replace(
                    was, channel=channel, start=start, sent=was.sent + later, end=was.end + later
                )
            return replace(
                one,
                index=of_move[move],
                source=at(one.source),
                destinations=tuple(at(end) for end in one.destinations),
            )

        placements = tuple(
            replace(
                run,
                start=begins + timed.start[run.task],
                end=begins + timed.start[run.task] + run.end - run.start,
                reads=tuple(map(at, run.reads)),
                writes=tuple(map(at, run.writes)),
                scratch=None if run.scratch is None else at(run.scratch),
            )
            for run in plan.placements
        )
        residencies, transfers = tuple(map(residency, rows)), tuple(map(transfer, moves))
        stream = Stream(
            period=timed.period, begins=begins, instances=tuple(each[1:] for each in self._tensors)
        )
        measures = measure(self._problem, placements, residencies, transfers, stream)
        return replace(
            plan,
            placements=placements,
            residencies=residencies,
            transfers=transfers,
            tensors=tuple(each[0] for each in self._tensors),
            stream=stream,
            claim=claim_of(measures, 0, "none"),
        )
