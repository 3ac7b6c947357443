"""Command lists of a stream: a prologue, and a loop whose turns begin a period apart in the plan.

The order of enough inferences, written out, says what each task and transfer waits for, of itself
or earlier inferences. It repeats after as many inferences as there are instances; what holds for
one of these is asked of all, so that every turn has the same waits. None closes a circle: what is
waited for starts earlier in the plan, by the same cycles in every turn.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from spmilp.commands.build import TooManyEventsError, with_counters
from spmilp.commands.commands import (
    Command,
    CommandLists,
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
    ListIdx,
    activities_of,
    predecessors,
    transitive_reduction,
)
from spmilp.commands.pacing import with_pacing
from spmilp.plan.plan import Plan, Stream
from spmilp.plan.running import Running, inferences_at_once, rounds_of, running
from spmilp.problem.problem import Problem


def build_stream_commands(problem: Problem, plan: Plan) -> StreamCommands:
    """Return prologue and loop of a valid stream, with as few waits as their order allows.

    Raises a ``TooManyEventsError`` if the machine has fewer events than lists that others wait for,
    or events that count only so far.
    """
    assert plan.stream is not None
    machine = problem.machine
    if machine.event_maximum is not None:
        raise TooManyEventsError(
            f"events of {machine.name} count to {machine.event_maximum}, but those of a stream "
            "count on and on (modulo 2^32): if its firmware can wait for words of memory, remove "
            "the machine's event_maximum"
        )
    made = _Loop(problem, plan, plan.stream).commands()
    events = made.prologue.events
    if events > (machine.events or inf):
        raise TooManyEventsError(
            f"the stream needs {events} events, one for each list that others wait for in its "
            f"prologue and one in its loop; {machine.name} has {machine.events}: use fewer cores"
        )
    return made


def enough_to_prove(plan: Plan, stream: Stream) -> int:
    """Return after how many inferences all that meet have met, at all addresses, twice."""
    return 2 * _until_all_met(plan, stream)


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
    per_turn = commands.signals_of_a_turn()
    lists: list[list[Command]] = []
    for once, one in zip(commands.prologue.lists, commands.body, strict=True):
        mine = list(once.commands)
        for turn in range(inferences + commands.last_stage):
            for command in one:
                match command:
                    case LoopWait(event, count, back):
                        if turn >= back:
                            reached = count + (turn - back) * per_turn[event]
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

    def commands(self) -> StreamCommands:
        """Return prologue and loop; all who take part in that wait for the end of the prologue."""
        stages = {(one.is_move, one.row): one.stage for one in self._in_turn}
        once = self._prologue()
        ended = [number for number, one in enumerate(once.lists) if one.commands]
        barrier = {number: once.events + place for place, number in enumerate(ended)}
        body, events = self._body(once.events + len(ended))
        lists = []
        for number, (one, loop) in enumerate(zip(once.lists, body, strict=True)):
            signals = [Signal(barrier[number])] if number in barrier else []
            waits = [Wait(event, 1) for event in barrier.values()] if loop else []
            lists.append([*one.commands, *signals, *waits])
        return StreamCommands(
            prologue=_with(once, lists, events),
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

    def _prologue(self) -> CommandLists:
        once = [one for one in self._written.order if self._is_once(one)]
        number = {one: place for place, one in enumerate(once)}
        activities = self._numbered([self._written.list_of[one] for one in once])
        before = [[number[e] for e in self._before[one] if e in number] for one in once]
        work = [Move(self._row(one)[2]) for one in once]
        least = transitive_reduction(activities, before)
        return with_counters(self._runs.problem.machine, activities, least, None, work)

    def _is_once(self, activity: Activity) -> bool:
        move = activity - self._written.tasks
        return move >= 0 and self._runs.plan.transfers[move].start < self._stream.begins

    def _body(self, events: int) -> tuple[tuple[tuple[LoopCommand, ...], ...], int]:
        """Return the lists of the loop, and how many ``events`` there are with theirs.

        It is the last of so many turns that they show which wait implies which.
        """
        wanted = self._awaited()
        each, many = self._in_turn, len(self._in_turn)
        turns = 1 + max((back for waits in wanted for _, back in waits), default=0)
        before = [
            [(turn - back) * many + earlier for earlier, back in waits if back <= turn]
            for turn in range(turns)
            for waits in wanted
        ]
        activities = self._numbered([one.list for one in each] * turns)
        least = transitive_reduction(activities, before)[-many:]
        lists = self._numbered([one.list for one in each])
        awaited = {earlier % many for waits in least for earlier in waits}
        reached: dict[Activity, tuple[int, int]] = {}
        for mine in lists.lists:
            signalled = [one for one in mine if one in awaited]
            reached |= {one: (events, 1 + number) for number, one in enumerate(signalled)}
            events += bool(signalled)
        commands: list[tuple[LoopCommand, ...]] = []
        for mine in lists.lists:
            found: list[LoopCommand] = []
            for one in mine:
                waits = sorted((*reached[e % many], turns - 1 - e // many) for e in least[one])
                found += [LoopWait(*wait) for wait in waits]
                found.append(Move(each[one].row) if each[one].is_move else Run(each[one].row))
                found += [Signal(reached[one][0])] if one in awaited else []
            commands.append(tuple(found))
        return tuple(commands), events

    def _awaited(self) -> list[set[tuple[int, int]]]:
        """Return what each in a turn waits for: one of a turn, and how many turns before.

        A list begins a turn when the inputs of its inference are there.
        """
        places = self._place
        found: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
        paced = self._paced()
        for activity in self._written.order:
            inference, is_move, row = self._row(activity)
            if not 0 <= inference - self._met < self._rounds or self._is_once(activity):
                continue
            place = places[is_move, row]
            for earlier in paced[activity]:
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
