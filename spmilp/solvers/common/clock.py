"""Time of one solve, or its work; and how long the steps take that cannot be cut."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from math import inf
from time import monotonic


class OutOfTimeError(Exception):
    """A step gives up because its time is over; what began it goes on with what is known."""


class Step(Enum):
    """Steps that run to their end once they have begun.

    The value is the usual number of seconds for each unit of work: for each task, or for each row
    of a plan (placements, residencies and transfers).
    """

    LOWER = 1.3e-4
    """To lower a network: seconds for each task."""
    SCHEDULE = 1.2e-5
    """Seconds for each read: tables, assignment, order and one pass of the list scheduler."""
    PLAN = 7e-6
    """Seconds for each row of a plan's tables: to make the plan from a schedule."""
    OPEN = 3.5e-6
    """Seconds for each row: a double justification of a schedule with open addresses."""
    PACK = 1.4e-5
    """Seconds for each row: the same, and addresses for the result."""
    CHECK = 1.25e-5
    """Seconds for each row: to check a plan."""
    SIMULATE = 8.1e-5
    """Seconds for each row: to make a plan's command lists, and to simulate them."""
    WRITE = 1.3e-5
    """Seconds for each row: to write problem and plan."""
    BOUND = 8e-6
    """Seconds for each read: one of the bounds that need no search."""
    HEADS = 8e-5
    """Seconds for each read: the heads and tails that some of these bounds begin with."""
    STRUCTURE = 3e-5
    """Seconds for each slice and pair of memories: to find what an exact model may decide."""
    TRY = 4e-4
    """Seconds for each task: to make a problem of other tiles, besides its schedules."""
    PASS = 2.5e-6
    """Seconds for each activity: to justify a schedule in one direction."""
    MOVE = 1.5e-6
    """Seconds for each activity: to move a task to another core."""
    OVERLAP = 2e-4
    """Seconds for each activity: to overlap inferences in one period, with addresses."""
    ADDRESS = 9e-6
    """Seconds for each residency, and each node of the search: to pack a memory."""
    ENGINE = 8.0
    """Seconds for each unit of deterministic time of CP-SAT, in a model of few constraints."""
    NODE = 0.2
    """Seconds for each node of HiGHS's search, of which each model has at least one."""


ROWS_OF_A_READ = 2
"""Rows of a plan for each read, about; taken where there is no plan yet."""

UNEVEN = frozenset({Step.OPEN, Step.PACK, Step.BOUND, Step.HEADS, Step.STRUCTURE, Step.OVERLAP})
"""Steps whose work for a unit differs from problem to problem, and says nothing of the machine."""

SIGNIFICANT = 0.05
"""Seconds; shorter steps are too short to tell how quick the machine is."""

SLOWEST = 30.0
"""Largest factor by which steps are taken to be slower than usual: a step that took longer has
loaded libraries, which happens only once."""


class Pace:
    """Seconds that steps will take, from how long they have taken in this very run.

    A step that was not taken yet is expected to be as much slower than usual as the last one was
    that does the same work for each unit. ``now`` tells the seconds of limits: wall time as a rule,
    so that on a busy machine steps take long.
    """

    counts_work = False
    """Whether it counts work instead of time (:class:`Work`)."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.now = now
        self._measured: dict[Step, float] = {}
        self._slowness = 1.0

    def seconds(self, step: Step, amount: float) -> float:
        """Return how long a step with so many units of work is expected to take."""
        return amount * step.value * self._measured.get(step, self._slowness)

    def seconds_to_finish(self, rows: int) -> float:
        """Return how long it will take to make a plan of so many rows, check it and write it."""
        return sum(self.seconds(step, rows) for step in (Step.PLAN, Step.CHECK, Step.WRITE))

    def seconds_to_schedule(self, tasks: int, reads: int) -> float:
        """Return how long it will take to make a problem of so many tasks and a schedule of it."""
        return self.seconds(Step.LOWER, tasks) + self.seconds(Step.SCHEDULE, reads)

    def seconds_from_scratch(self, tasks: int, reads: int) -> float:
        """Return how long it will take until the plan of a problem not yet made is written."""
        finish = self.seconds_to_finish(tasks + ROWS_OF_A_READ * reads)
        return self.seconds_to_schedule(tasks, reads) + finish

    @contextmanager
    def measured(self, step: Step, amount: float) -> Iterator[None]:
        """Note how long a step takes; one that raises is not noted."""
        began = self.now()
        yield
        self.note(step, amount, self.now() - began)

    def count(self, step: Step, amount: float) -> None:
        """Count a step that was taken, where work counts and not time."""

    def is_late(self, seconds: float) -> bool:
        """Say whether a time limit beside that of work is over but for so many seconds."""
        return False

    def engine_seconds(self, left: float | None) -> float | None:
        """Return the wall seconds that another program may take, of those that are left."""
        return left

    def note(self, step: Step, amount: float, seconds: float) -> None:
        """Learn that a step with so many units of work took some seconds."""
        if amount <= 0:
            return
        slowness = seconds / (amount * step.value)
        if seconds >= SIGNIFICANT:
            self._measured[step] = slowness
            if step not in UNEVEN:
                self._slowness = min(slowness, SLOWEST)
        elif step in self._measured:
            # The first time may have made tables of the machine, or loaded code, for all others.
            self._measured[step] = min(self._measured[step], max(1.0, slowness))


MADE_OF_PASSES = frozenset({Step.SCHEDULE, Step.OPEN, Step.PACK})
"""Steps whose parts are counted themselves."""

SLOW_FROM, PRESOLVED = 8_000, 40_000
"""Constraints of a model of which a unit of deterministic time takes twice as long, for it does not
tell the propagation of schedules; and so many as are presolved in the time of a unit."""

LOOK = 2e-5
"""Seconds for a look at the clock: so each loop that asks whether it is over ends some time."""

CALL = 3e-4
"""Seconds for each step, however small."""


class Work(Pace):
    """Counts work instead of time: the seconds that steps usually take.

    So limits mean the same on every machine and under every load, and so do forecasts. After
    ``time_limit`` seconds from now on everything is over all the same; it ``was_late`` if that has
    ended something before its work was done.
    """

    counts_work = True

    def __init__(self, time_limit: float | None = None) -> None:
        super().__init__(self._look)
        self._seconds = 0.0
        self._ends = inf if time_limit is None else monotonic() + time_limit
        self.was_late = False

    def _look(self) -> float:
        self._seconds += LOOK
        return self._seconds

    def count(self, step: Step, amount: float) -> None:
        """Count a step that was taken."""
        self._seconds += CALL + amount * step.value

    def is_late(self, seconds: float) -> bool:
        """Say whether the time limit is over but for so many seconds."""
        self.was_late = self.was_late or monotonic() + seconds > self._ends
        return self.was_late

    def engine_seconds(self, left: float | None) -> float | None:
        """Return the wall seconds until the time limit."""
        return None if self._ends == inf else max(0.0, self._ends - monotonic())

    def note(self, step: Step, amount: float, seconds: float) -> None:
        """Count a step, unless its parts were counted; how long it took says nothing."""
        if step not in MADE_OF_PASSES:
            self.count(step, amount)


class Clock:
    """Counts down from limits; shares of the limit say when each step of a solver has to end.

    ``seconds`` is the limit of the whole solve, ``deterministic`` that of CP-SAT's own
    deterministic time in all its runs; ``None`` for none. ``pace`` is what is known of the pace of
    steps; it tells the seconds, too.
    ``limit`` is in seconds; ``spent`` is the deterministic time of all runs so far.
    """

    def __init__(self, seconds: float | None, pace: Pace | None = None) -> None:
        self.pace = Pace() if pace is None else pace
        self.deterministic: float | None = None
        self._began = self.pace.now()
        self.limit = self._seconds = seconds
        self.spent = self._reserved = 0.0
        self._is_stopped = False

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self._seconds is not None or self.deterministic is not None

    def now(self) -> float:
        """Return the seconds of its pace, from some moment on."""
        return self.pace.now()

    @property
    def seconds_gone(self) -> float:
        """Seconds since it began to count."""
        return self.pace.now() - self._began

    def stop(self) -> None:
        """Be over now."""
        self._is_stopped = True

    def reserve(self, seconds: float) -> None:
        """Be over so many seconds before the limit; what was said before no longer counts."""
        self._reserved = seconds
        if self.limit is not None:
            self._seconds = max(0.0, self.limit - seconds)

    def spend(self, deterministic: float, constraints: int) -> None:
        """Note the deterministic time of a run on a model of so many constraints."""
        self.spent += deterministic
        presolved = constraints / PRESOLVED
        self.pace.count(Step.ENGINE, deterministic * _slowness_of(constraints) + presolved)

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Return the seconds until a share of the limit is used; ``None`` without limit."""
        if self._is_stopped or self.pace.is_late(self._reserved):
            return 0.0
        if self._seconds is None:
            return None
        return max(0.0, self._began + share * self._seconds - self.pace.now())

    def engine_seconds(self, share: float = 1.0) -> float | None:
        """Return the wall seconds that another program may take; ``None`` for no limit.

        Where work counts, :meth:`deterministic_left` is its limit.
        """
        return self.pace.engine_seconds(self.seconds_left(share))

    def deterministic_left(
        self, at_most: float | None = None, share: float = 1.0, constraints: int = 0
    ) -> float | None:
        """Return the deterministic time that a run may take until a share of the limit is used.

        ``None`` without limit.
        """
        limits = [] if at_most is None else [at_most]
        if self.deterministic is not None:
            limits.append(max(0.0, share * self.deterministic - self.spent))
        left = self.seconds_left(share)
        if self.pace.counts_work and left is not None:
            limits.append(left / Step.ENGINE.value / _slowness_of(constraints))
        return min(limits, default=None)

    def is_over(self, share: float = 1.0) -> bool:
        """Say whether a share of either limit is used."""
        return self.seconds_left(share) == 0.0 or self.deterministic_left(share=share) == 0.0

    def has_seconds(self, seconds: float, share: float = 1.0) -> bool:
        """Say whether so many seconds are left until a share of the limit is used."""
        left = self.seconds_left(share)
        return left is None or left > seconds

    def go_on(self, share: float = 1.0) -> None:
        """Raise :class:`OutOfTimeError` when a share of the limit is used."""
        if self.is_over(share):
            raise OutOfTimeError


def _slowness_of(constraints: int) -> float:
    """Return how many times as long a unit of deterministic time takes in a model."""
    return 1 + constraints / SLOW_FROM
