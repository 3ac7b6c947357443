"""Lists of steps that run side by side, from event to event.

Each list takes its steps in order. It waits for counters, which others raise; it works for some
cycles; or it sends bytes, for which it takes a set-up, then shares the links with all who send, and
goes on when the last byte has arrived.
"""

from collections import defaultdict
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
    most.
    """

    number: int
    setup: float
    bytes: int
    rate: float
    links: tuple[int, ...]
    latency: float

    @property
    def alone(self) -> float:
        """The cycles of its bytes where nobody shares its links."""
        return self.bytes / self.rate


Step: TypeAlias = Wait | Signal | Work | Send

ListIdx: TypeAlias = int


@dataclass(slots=True)
class Activity:
    """What became of a step that takes time, from cycle ``start`` to ``end``.

    It is ``after`` the step whose end allowed it to start: the one before it in its list, or the
    one behind which the last signal that it waited for stands; ``None`` if it starts at cycle 0.
    """

    step: Work | Send
    start: float
    end: float
    after: "Activity | None"


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
        self._last: list[Activity | None] = [None] * len(lists)
        self._reached: defaultdict[int, int] = defaultdict(int)
        self._waiting: defaultdict[int, list[ListIdx]] = defaultdict(list)
        self._sends = [
            (who, step)
            for who, steps in enumerate(lists)
            for step in steps
            if isinstance(step, Send)
        ]
        self._place = {step.number: place for place, (_, step) in enumerate(self._sends)}
        self._sharing = Sharing(
            capacity,
            [step.links for _, step in self._sends],
            [step.rate for _, step in self._sends],
            [step.bytes for _, step in self._sends],
        )
        self._queue: list[tuple[float, int, ListIdx, int | None]] = []
        self._pushed = 0
        self.activities: dict[int, Activity] = {}

    def run(self) -> list[Blocked]:
        """Run all lists to their end, or to where they wait for ever; return those that do."""
        now = last = 0.0
        for who in range(len(self._lists)):
            self._go_on(who, now, None)
        ends = self._sharing.shared()
        while self._queue or ends < inf:
            now = min(self._queue[0][0] if self._queue else inf, last + ends)
            changed = self._sharing.after(now - last)
            ends, last = ends - (now - last), now
            for place in changed:
                who, sent = self._sends[place]
                self._push(now + sent.latency, who)
            is_new = bool(changed)
            while self._queue and self._queue[0][0] <= now + AT_ONCE:
                _, _, who, sends = heappop(self._queue)
                if sends is not None:
                    self._sharing.begin(self._place[sends])
                    is_new = True
                else:
                    self._ended(who, now)
            if is_new:
                ends = self._sharing.shared()
        stuck = [who for who, at in enumerate(self._next) if at < len(self._lists[who])]
        return [Blocked(who, self._next[who], self._value(who)) for who in stuck]

    def _value(self, who: ListIdx) -> int:
        step = self._lists[who][self._next[who]]
        return self._reached[step.event] if isinstance(step, Wait) else 0

    def _push(self, time: float, who: ListIdx, sends: int | None = None) -> None:
        """Come back to a list: its step has ended, or begins to send now."""
        heappush(self._queue, (time, self._pushed, who, sends))
        self._pushed += 1

    def _ended(self, who: ListIdx, now: float) -> None:
        """Note the end of the step that a list is at, and let it go on."""
        activity = self._last[who]
        if activity is not None:
            activity.end = now
        self._next[who] += 1
        self._go_on(who, now, activity)

    def _go_on(self, who: ListIdx, now: float, cause: Activity | None) -> None:
        """Take the steps of a list, and of all that its signals wake, up to those that take time.

        ``cause`` is what ended just now.
        """
        ready = [(who, cause)]
        while ready:
            who, cause = ready.pop()
            steps = self._lists[who]
            while self._next[who] < len(steps):
                step = steps[self._next[who]]
                if isinstance(step, Wait):
                    if self._reached[step.event] < step.count:
                        self._waiting[step.event].append(who)
                        break
                    self._reached[step.event] -= step.count * self._takes
                elif isinstance(step, Signal):
                    self._reached[step.event] += 1
                    woken = self._waiting.pop(step.event, [])
                    ready += [(each, self._last[who]) for each in woken]
                else:
                    self._begin(who, step, now, cause)
                    break
                self._next[who] += 1

    def _begin(self, who: ListIdx, step: Work | Send, now: float, cause: Activity | None) -> None:
        activity = Activity(step, now, inf, cause)
        self.activities[step.number] = activity
        self._last[who] = activity
        if isinstance(step, Work):
            self._push(now + step.cycles, who)
        else:
            self._push(now + step.setup, who, step.number)
