"""Command lists of a stream: a prologue, and a loop whose turns begin a period apart in the plan.

The order of enough inferences, written out, says what each task and transfer waits for, of itself
or earlier inferences. It repeats after as many inferences as there are instances; what holds for
one of these is asked of all, so that every turn has the same waits. None closes a circle: what is
waited for starts earlier in the plan, by the same cycles in every turn.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from spmilp.commands.build import TooManyEventsError, command_lists, with_counters
from spmilp.commands.commands import (
    Command,
    CommandLists,
    EventScheme,
    LoopCommand,
    LoopWait,
    Move,
    Run,
    Signal,
    StreamCommands,
    Wait,
)
from spmilp.commands.order import (
    Activities,
    Activity,
    Before,
    Clocks,
    ListIdx,
    activities_of,
    predecessors,
    transitive_reduction,
)
from spmilp.commands.pacing import with_pacing
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan, Stream
from spmilp.plan.running import Running, inferences_at_once, rounds_of, running
from spmilp.problem.problem import Problem

_ENDLESS = 1 << 32
"""More than any event counts to."""


def build_stream_commands(problem: Problem, plan: Plan) -> StreamCommands:
    """Return prologue and loop of a valid stream, with as few waits as their order allows.

    Events are counters, which count on and on, or semaphores if the machine's count only so far: a
    wait that leaves an event as it is lets it count beyond any maximum.
    Raises a ``TooManyEventsError`` if the machine has too few, or some would count too far.
    """
    assert plan.stream is not None
    machine, loop = problem.machine, _Loop(problem, plan, plan.stream)
    made = loop.with_counters() if machine.event_maximum is None else loop.with_semaphores()
    if _fits(made, machine):
        return made
    kind, maximum = (
        ("counters", "")
        if made.highest is None
        else ("semaphores", f" that count to {made.highest}")
    )
    limit = "" if machine.event_maximum is None else f" that count to {machine.event_maximum}"
    raise TooManyEventsError(
        f"the stream needs {made.prologue.events} events as {kind}{maximum}; {machine.name} has "
        f"{machine.events}{limit}: use fewer cores or larger tiles, or, if firmware can wait for "
        "words of memory, remove the machine's limits on events"
    )


def _fits(made: StreamCommands, machine: Machine) -> bool:
    """Say whether a machine has so many events, which count so far."""
    is_counted = (made.highest or 0) <= (machine.event_maximum or inf)
    return is_counted and made.prologue.events <= (machine.events or inf)


def enough_to_prove(plan: Plan, stream: Stream, highest: int | None = None) -> int:
    """Return after how many inferences all that meet have met, at all addresses, twice.

    They are more than semaphores count to, ``highest``: one that nothing keeps from counting on
    and on would count farther.
    """
    return max(2 * _until_all_met(plan, stream), 1 + (highest or 0))


def _until_all_met(plan: Plan, stream: Stream) -> int:
    # The application is a period ahead, and one behind.
    return rounds_of(plan, stream) + inferences_at_once(plan, stream) + 2


def _with(lists: CommandLists, commands: Sequence[Sequence[Command]], events: int) -> CommandLists:
    """Return lists with other commands."""
    cores = len(lists.cores)
    return replace(
        lists,
        cores=tuple(
            replace(one, commands=tuple(mine))
            for one, mine in zip(lists.cores, commands[:cores], strict=True)
        ),
        channels=tuple(
            replace(one, commands=tuple(mine))
            for one, mine in zip(lists.channels, commands[cores:], strict=True)
        ),
        events=events,
    )


def in_turns(commands: StreamCommands, runs: Running, inferences: int) -> CommandLists:
    """Return the lists that so many inferences take, for ``runs``, which has these.

    What a turn does for an inference that there is not is left out, but for its waits and signals.
    """
    tasks = {row: number for number, row in enumerate(runs.tasks)}
    moves = {row: number for number, row in enumerate(runs.transfers)}
    per_turn, counts = commands.signals_of_a_turn(), commands.highest is None
    lists: list[list[Command]] = []
    for once, one in zip(commands.prologue.lists, commands.body, strict=True):
        mine = list(once.commands)
        for turn in range(inferences + commands.last_stage):
            for command in one:
                match command:
                    case LoopWait(event, count, back):
                        if turn >= back:
                            reached = count + counts * (turn - back) * per_turn[event]
                            mine.append(Wait(event, reached))
                    case Signal(event):
                        mine.append(Signal(event))
                    case Run(task):
                        at = turn - commands.task_stages[task], task
                        mine += [Run(tasks[at])] if at in tasks else []
                    case Move(transfer):
                        at = turn - commands.transfer_stages[transfer], transfer
                        mine += [Move(moves[at])] if at in moves else []
        lists.append(mine)
    return _with(commands.prologue, lists, commands.prologue.events)


def _written_out(waits: Sequence[Collection[tuple[int, int]]], turns: int) -> list[list[Activity]]:
    """Return what each waits for in so many turns, where these are numbered one behind the other.

    ``waits`` has it for each in a turn: one of a turn, and how many turns before.
    """
    many = len(waits)
    return [
        [(turn - back) * many + earlier for earlier, back in mine if back <= turn]
        for turn in range(turns)
        for mine in waits
    ]


class _Each(NamedTuple):
    """What every turn does once: a task or transfer of the stream, by its list and its stage.

    ``at`` is when it starts in a turn in the plan; ``row`` is the number of the task or transfer.
    """

    at: int
    is_move: bool
    row: int
    list: ListIdx
    stage: int


class _Loop:
    """Makes the commands of one stream."""

    def __init__(self, problem: Problem, plan: Plan, stream: Stream) -> None:
        self._stream, self._met = stream, _until_all_met(plan, stream)
        self._rounds, self._transfers = rounds_of(plan, stream), len(plan.transfers)
        self._runs = running(problem, plan, 2 * self._met)
        self._written = activities_of(self._runs.problem, self._runs.plan)
        self._before = predecessors(self._runs.problem, self._runs.plan, self._written)
        self._in_turn = self._of_a_turn()
        self._place = {(one.is_move, one.row): n for n, one in enumerate(self._in_turn)}

    def with_counters(self) -> StreamCommands:
        """Return prologue and loop, in each of which a list counts in an event of its own."""
        activities, least, work = self._once()
        once = with_counters(self._runs.problem.machine, activities, least, None, work)
        ended = [number for number, mine in enumerate(activities.lists) if mine]
        barrier = {number: once.events + place for place, number in enumerate(ended)}
        waits = self._waits(self._awaited(self._paced()))
        reached, events = dict[Activity, tuple[int, int]](), once.events + len(ended)
        awaited = {earlier for mine in waits for earlier, _ in mine}
        for mine in self._numbered([one.list for one in self._in_turn]).lists:
            signalled = [one for one in mine if one in awaited]
            reached |= {one: (events, 1 + number) for number, one in enumerate(signalled)}
            events += bool(signalled)
        body = self._body(
            [sorted((*reached[e], back) for e, back in mine) for mine in waits],
            [[reached[one][0]] if one in reached else [] for one in range(len(waits))],
        )
        return self._made(_with(once, [e.commands for e in once.lists], events), body, barrier)

    def with_semaphores(self) -> StreamCommands:
        """Return the same with a semaphore for each two lists of which one waits for the other.

        Its waits take its signals in their order: were two of them the other way round, or for the
        same one, the reduction would have dropped one. What holds back a list that waits holds back
        those that signal it, through the bytes that they overwrite: so no semaphore counts on and
        on. Pacing is left out if there were too many with it, or some would count too far.
        """
        for before in (self._paced(), self._before):
            found = self._with_semaphores(self._waits(self._awaited(before)))
            if _fits(found, self._runs.problem.machine):
                break
        return found

    def _with_semaphores(self, waits: Sequence[Sequence[tuple[int, int]]]) -> StreamCommands:
        events: dict[tuple[ListIdx, ListIdx], int] = {}

        def event(signals: ListIdx, waiting: ListIdx) -> int:
            return events.setdefault((signals, waiting), len(events))

        activities, least, work = self._once()
        lists = activities.list_of
        begins: list[list[Wait]] = []
        ends: list[list[Signal]] = [[] for _ in work]
        for later, mine in enumerate(least):
            begins.append([Wait(event(lists[e], lists[later]), 1) for e in mine])
            for earlier, wait in zip(mine, begins[-1], strict=True):
                ends[earlier].append(Signal(wait.event))
        first, turn = self._place[False, self._runs.hand_in], [e.list for e in self._in_turn]
        ended = [number for number, mine in enumerate(activities.lists) if mine]
        barrier = {number: event(number, turn[first]) for number in ended}
        taken, sent = list[list[tuple[int, int, int]]](), list[list[int]]([] for _ in turn)
        for later, some in enumerate(waits):
            own = [(event(turn[e], turn[later]), 1, back) for e, back in some]
            taken.append(sorted(own))
            for (earlier, _), (number, *_) in zip(some, own, strict=True):
                sent[earlier].append(number)
        body = self._body(taken, [sorted(numbers) for numbers in sent])
        given = command_lists(
            self._runs.problem.machine, activities, begins, ends, len(events),
            EventScheme.SEMAPHORES, work,
        )  # fmt: skip
        made = self._made(given, body, barrier)
        # All that a list has signalled before the loop is taken before it begins.
        every = (command for one in made.prologue.lists for command in one.commands)
        once = Counter(command.event for command in every if isinstance(command, Signal))
        return replace(made, highest=max(self._highest(waits), *once.values()))

    def _highest(self, waits: Sequence[Sequence[tuple[int, int]]]) -> int:
        """Return how many signals a semaphore may hold that nobody has taken.

        It is that of so many turns that each list is held back in them. One that holds all of them
        holds more than any machine counts to in the end.
        """
        many, turns = len(waits), 2 * self._met
        after: list[list[int]] = [[] for _ in waits]
        for later, mine in enumerate(waits):
            for earlier, back in mine:
                after[earlier].append(back * many + later - earlier)
        activities = self._numbered([one.list for one in self._in_turn] * turns)
        clocks = Clocks(activities, _written_out(waits, turns))
        list_of, highest = activities.list_of, 0
        takers: defaultdict[tuple[ListIdx, ListIdx], deque[int]] = defaultdict(deque)
        is_taken = set[tuple[ListIdx, ListIdx]]()
        for activity, clock in clocks.at_each_end():
            for further in sorted(after[activity % many]):
                taker = activity + further
                pair = list_of[activity], list_of[taker % many]
                waiting = takers[pair]
                waiting.append(taker)
                while waiting[0] < len(list_of) and clocks.covers(clock, waiting[0]):
                    waiting.popleft()
                    is_taken.add(pair)
                highest = max(highest, len(waiting))
        return highest if is_taken == takers.keys() else _ENDLESS

    def _made(
        self,
        once: CommandLists,
        body: tuple[tuple[LoopCommand, ...], ...],
        barrier: Mapping[ListIdx, int],
    ) -> StreamCommands:
        """Return prologue and loop; before the first input is handed in, all of that has ended."""
        stages = {(one.is_move, one.row): one.stage for one in self._in_turn}
        first, lists = self._in_turn[self._place[False, self._runs.hand_in]].list, []
        for number, one in enumerate(once.lists):
            signals = [Signal(barrier[number])] if number in barrier else []
            waits = [Wait(event, 1) for event in barrier.values()] if number == first else []
            lists.append([*one.commands, *signals, *waits])
        return StreamCommands(
            prologue=_with(once, lists, once.events),
            body=body,
            task_stages=tuple(stages[False, task] for task in range(self._runs.take + 1)),
            transfer_stages=tuple(stages.get((True, move), 0) for move in range(self._transfers)),
        )

    def _row(self, activity: Activity) -> tuple[int, bool, int]:
        """Return the inference of an activity, whether it is a transfer, and its number."""
        if activity < self._written.tasks:
            inference, row = self._runs.tasks[activity]
            return inference, False, row
        inference, row = self._runs.transfers[activity - self._written.tasks]
        return inference, True, row

    def _of_a_turn(self) -> list[_Each]:
        """Return what a turn does, in the order of the plan; first the inputs are handed in."""
        found, plan, begins = list[_Each](), self._runs.plan, self._stream.begins
        for activity in self._written.order:
            inference, is_move, row = self._row(activity)
            if is_move:
                start = plan.transfers[activity - self._written.tasks].start
            else:
                start = plan.placements[activity].start
            if inference or start < begins:
                continue
            stage, at = divmod(start - begins - self._stream.period, self._stream.period)
            if not is_move and row == self._runs.hand_in:
                stage, at = 0, -1
            found.append(_Each(at, is_move, row, self._written.list_of[activity], stage))
        return sorted(found)

    def _once(self) -> tuple[Activities, Sequence[Sequence[Activity]], list[Move]]:
        """Return the transfers of the prologue, what each waits for, and their commands."""
        once = [one for one in self._written.order if self._is_once(one)]
        number = {one: place for place, one in enumerate(once)}
        activities = self._numbered([self._written.list_of[one] for one in once])
        before = [[number[e] for e in self._before[one] if e in number] for one in once]
        work = [Move(self._row(one)[2]) for one in once]
        return activities, transitive_reduction(activities, before), work

    def _is_once(self, activity: Activity) -> bool:
        move = activity - self._written.tasks
        return move >= 0 and self._runs.plan.transfers[move].start < self._stream.begins

    def _waits(self, wanted: Sequence[set[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
        """Return what each in a turn has to wait for, and how many turns before; no fewer would do.

        It is the last of so many turns that they show which wait implies which.
        """
        many = len(wanted)
        turns = 1 + max((back for waits in wanted for _, back in waits), default=0)
        activities = self._numbered([one.list for one in self._in_turn] * turns)
        least = transitive_reduction(activities, _written_out(wanted, turns))[-many:]
        return [[(e % many, turns - 1 - e // many) for e in mine] for mine in least]

    def _body(
        self, waits: Sequence[Sequence[tuple[int, int, int]]], signals: Sequence[Sequence[int]]
    ) -> tuple[tuple[LoopCommand, ...], ...]:
        """Return the lists of the loop, from the waits and the signals of each in a turn."""
        each, found = self._in_turn, list[tuple[LoopCommand, ...]]()
        for mine in self._numbered([one.list for one in each]).lists:
            commands: list[LoopCommand] = []
            for one in mine:
                commands += [LoopWait(*wait) for wait in waits[one]]
                commands.append(Move(each[one].row) if each[one].is_move else Run(each[one].row))
                commands += map(Signal, signals[one])
            found.append(tuple(commands))
        return tuple(found)

    def _awaited(self, before: Before) -> list[set[tuple[int, int]]]:
        """Return what each in a turn is to wait for: one of a turn, and how many turns before.

        A list begins a turn when the inputs of its inference are there.
        """
        places = self._place
        found: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
        for activity in self._written.order:
            inference, is_move, row = self._row(activity)
            if not 0 <= inference - self._met < self._rounds or self._is_once(activity):
                continue
            place = places[is_move, row]
            for earlier in before[activity]:
                if self._is_once(earlier):
                    continue
                other, is_move, row = self._row(earlier)
                at = places[is_move, row]
                later = self._in_turn[place].stage - self._in_turn[at].stage
                found[place].add((at, inference - other + later))
        given = places[False, self._runs.hand_in]
        for mine in self._numbered([one.list for one in self._in_turn]).lists:
            for first in mine[:1]:
                found[first] |= {(given, 0)} if first != given else set()
        return [found[place] for place in range(len(self._in_turn))]

    def _paced(self) -> Before:
        """Return what each activity waits for, paced as if the application took no time.

        Nothing waits for the application for the sake of its pace.
        """
        plan, problem = self._runs.plan, self._runs.problem
        own = frozenset(
            n for n, (_, row) in enumerate(self._runs.tasks) if row >= self._runs.hand_in
        )
        runs = [replace(run, start=0, end=1) if run.task in own else run for run in plan.placements]
        timed = replace(plan, placements=tuple(runs))
        paced = with_pacing(problem, timed, self._written, self._before)
        return tuple(a | (b - own) for a, b in zip(self._before, paced, strict=True))

    def _numbered(self, list_of: Sequence[ListIdx]) -> Activities:
        """Return activities of these lists, numbered in their order."""
        lists: list[list[Activity]] = [[] for _ in self._written.lists]
        position = []
        for number, one in enumerate(list_of):
            position.append(len(lists[one]))
            lists[one].append(number)
        order = tuple(range(len(list_of)))
        return Activities(
            tasks=0,
            order=order,
            lists=tuple(map(tuple, lists)),
            list_of=tuple(list_of),
            position=tuple(position),
            rank=order,
            pipelined=self._written.pipelined,
        )
