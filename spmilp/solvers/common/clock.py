"""Time of one solve."""

from collections.abc import Callable
from time import monotonic


class Clock:
    """Counts down from limits; shares of the limit say when each step of a solver has to end.

    Parameters
    ----------
    seconds
        Limit of the whole solve; ``None`` for none.
    now
        Tells the seconds: of wall time, or for measurements of processor time.
    deterministic
        Limit of CP-SAT's own deterministic time, all its runs together; ``None`` for none.
    """

    def __init__(
        self,
        seconds: float | None,
        now: Callable[[], float] = monotonic,
        *,
        deterministic: float | None = None,
    ) -> None:
        self.now = now
        self.deterministic = deterministic
        self._began = now()
        self._limit = self._seconds = seconds
        self._spent = 0.0
        self._is_stopped = False

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self._seconds is not None or self.deterministic is not None

    def stop(self) -> None:
        """Be over now."""
        self._is_stopped = True

    def reserve(self, seconds: float) -> None:
        """Be over so many seconds before the limit at least, but not before half of it."""
        if self._seconds is not None and self._limit is not None:
            self._seconds = min(self._seconds, max(self._limit / 2, self._limit - seconds))

    def spend(self, deterministic: float) -> None:
        """Note the deterministic time of a run."""
        self._spent += deterministic

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Return the seconds until a share of the limit is used; ``None`` without limit."""
        if self._is_stopped:
            return 0.0
        if self._seconds is None:
            return None
        return max(0.0, self._began + share * self._seconds - self.now())

    def deterministic_left(self, at_most: float | None = None) -> float | None:
        """Return the deterministic time that a run may take; ``None`` without limit."""
        limits = [] if at_most is None else [at_most]
        if self.deterministic is not None:
            limits.append(max(0.0, self.deterministic - self._spent))
        return min(limits, default=None)

    def is_over(self, share: float = 1.0) -> bool:
        """Say whether a share of the limit, or all deterministic time, is used."""
        return self.seconds_left(share) == 0.0 or self.deterministic_left() == 0.0
