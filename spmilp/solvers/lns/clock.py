"""Time of one solve."""

from collections.abc import Callable
from time import monotonic


class Clock:
    """Counts down from a limit in seconds; ``None`` for none.

    Parameters
    ----------
    now
        What tells the seconds: of wall time, or for measurements of processor time.
    """

    def __init__(self, seconds: float | None, now: Callable[[], float] = monotonic) -> None:
        self.now = now
        self._began = now()
        self._limit = self._seconds = seconds
        self._is_stopped = False

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self._seconds is not None

    def stop(self) -> None:
        """Be over now."""
        self._is_stopped = True

    def reserve(self, seconds: float) -> None:
        """Be over so many seconds before the limit at least, but not before half of it."""
        if self._seconds is not None and self._limit is not None:
            self._seconds = min(self._seconds, max(self._limit / 2, self._limit - seconds))

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Return the seconds until a share of the limit is used; ``None`` without limit."""
        if self._is_stopped:
            return 0.0
        if self._seconds is None:
            return None
        return max(0.0, self._began + share * self._seconds - self.now())

    def is_over(self, share: float = 1.0) -> bool:
        """Say whether that share is used."""
        return self.seconds_left(share) == 0.0
