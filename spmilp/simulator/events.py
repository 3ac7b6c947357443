"""Lists of steps that run side by side, from event to event.

Each list takes its steps in order. It waits for counters, which others raise; it works for some
cycles; or it sends bytes, for which it takes a set-up, then shares the links with all who send. It
goes on when the last byte has arrived or, if it is pipelined, is sent; its signals then wait until
all before them has arrived.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple, TypeAlias

from spmilp.commands.commands import Signal, Wait
from spmilp.simulator.sharing import Sharing

AT_ONCE = 1e-6
"""Cycles within which two things happen at the same time."""


class Work(NamedTuple):
    """Work for some cycles; ``number`` names it in what is told of the run."""

    number: int
    cycles: float


class Send(NamedTuple):
    """Send bytes over links, each once; over none for a copy inside a memory.

    The number names it in what is told of the run. There are ``setup`` cycles before the first
    byte, and ``latency`` until the last that is sent has arrived; the rate is bytes per cycle at
    most. Of a ``pipelined`` one the list goes on when all is sent.
    """

    number: int
    setup: float
    bytes: int
    rate: float
    links: tuple[int, ...]
    latency: float
    pipelined: bool = False

    @property
    def alone(self) -> float:
        """The cycles of its bytes where nobody shares its links."""
        return self.bytes / self.rate


Step: TypeAlias = Wait | Signal | Work | Send

ListIdx: TypeAlias = int


@dataclass(slots=True)
class Activity:
    """What became of a step of a list that takes time, from cycle ``start`` to ``end``.

    It is ``after`` the step whose end, or whose last byte ``sent``, allowed it to start: the one
    before it in its list, or the one with which the last signal came that it waited for; ``None``
    if it starts at cycle 0.
    """

    step: Work | Send
    list: ListIdx
    start: float
    after: "Activity | None"
    first_byte: float = inf
    sent: float = inf
    end: float = inf


class Blocked(NamedTuple):
    """A list that never ends: where it stands, and what its event has reached."""

    list: ListIdx
    step: int
    reached: int


class Events:
    """Lists of steps on a network of links, with the capacity of each in bytes per cycle.

    ``takes`` says whether a wait takes off the event what it waits for (semaphores).
    """

    def __init__(
        self, lists: Sequence[Sequence[Step]], capacity: Sequence[float], *, takes: bool
    ) -> None:
        self._lists, self._takes = lists, takes
        self._next = [0] * len(lists)
        # Of each list what has begun and not ended, and the events that are signalled behind it.
        self._open: list[deque[Activity | int]] = [deque() for _ in lists]
        self._reached: defaultdict[int, int] = defaultdict(int)
        self._waiting: defaultdict[int, list[ListIdx]] = defaultdict(list)
        self._sends = [step for steps in lists for step in steps if isinstance(step, Send)]
        self._place = {step.number: place for place, step in enumerate(self._sends)}
        self._sharing = Sharing(
            capacity,
            [step.links for step in self._sends],
            [step.rate for step in self._sends],
            [step.bytes for step in self._sends],
        )
        self._queue: list[tuple[float, int, Activity, bool]] = []
        self._pushed = 0
        self.activities: dict[int, Activity] = {}

    def run(self) -> list[Blocked]:
        """Run all lists to their end, or to where they wait for ever; return those that do."""
        now = last = 0.0
        self._go_on([*range(len(self._lists))], now, None)
        ends = self._sharing.shared()
        while self._queue or ends < inf:
            now = min(self._queue[0][0] if self._queue else inf, last + ends)
            changed = self._sharing.after(now - last)
            ends, last = ends - (now - last), now
            for place in changed:
                self._has_sent(self._sends[place], now)
            is_new = bool(changed)
            while self._queue and self._queue[0][0] <= now + AT_ONCE:
                _, _, activity, ended = heappop(self._queue)
                if ended:
                    self._has_ended(activity, now)
                else:
                    activity.first_byte, is_new = now, True
                    self._sharing.begin(self._place[activity.step.number])
            if is_new:
                ends = self._sharing.shared()
        stuck = [who for who, at in enumerate(self._next) if at < len(self._lists[who])]
        return [Blocked(who, self._next[who], self._value(who)) for who in stuck]

    def _value(self, who: ListIdx) -> int:
        step = self._lists[who][self._next[who]]
        return self._reached[step.event] if isinstance(step, Wait) else 0

    def _push(self, time: float, activity: Activity, *, ended: bool) -> None:
        """Come back to an activity: it has ended, or begins to send now."""
        heappush(self._queue, (time, self._pushed, activity, ended))
        self._pushed += 1

    def _has_sent(self, step: Send, now: float) -> None:
        activity = self.activities[step.number]
        activity.sent = now
        self._push(now + step.latency, activity, ended=True)
        if step.pipelined:
            self._next[activity.list] += 1
            self._go_on([activity.list], now, activity)

    def _has_ended(self, activity: Activity, now: float) -> None:
        """Note an end, send the signals behind it, and let its list go on if that stands there."""
        activity.sent, activity.end = min(activity.sent, now), now
        ready, behind = list[ListIdx](), self._open[activity.list]
        if not (isinstance(activity.step, Send) and activity.step.pipelined):
            self._next[activity.list] += 1
            ready.append(activity.list)
        while behind and (isinstance(behind[0], int) or behind[0].end <= now):
            first = behind.popleft()
            ready += self._signal(first) if isinstance(first, int) else ()
        self._go_on(ready, now, activity)

    def _signal(self, event: int) -> list[ListIdx]:
        """Raise a counter; return the lists that wait for it."""
        self._reached[event] += 1
        return self._waiting.pop(event, [])

    def _go_on(self, ready: list[ListIdx], now: float, cause: Activity | None) -> None:
        """Take steps of lists, and of those that they wake, until all work; ``cause`` lets them."""
        while ready:
            who = ready.pop()
            steps, behind = self._lists[who], self._open[who]
            while self._next[who] < len(steps):
                step = steps[self._next[who]]
                if isinstance(step, Wait):
                    if self._reached[step.event] < step.count:
                        self._waiting[step.event].append(who)
                        break
                    self._reached[step.event] -= step.count * self._takes
                elif not isinstance(step, Signal):
                    activity = self.activities[step.number] = Activity(step, who, now, cause)
                    behind.append(activity)
                    first = step.cycles if isinstance(step, Work) else step.setup
                    self._push(now + first, activity, ended=isinstance(step, Work))
                    break
                elif behind:
                    behind.append(step.event)
                else:
                    ready += self._signal(step.event)
                self._next[who] += 1
