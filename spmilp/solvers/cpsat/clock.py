"""Wall time and deterministic time of one solve."""

from time import monotonic


class Clock:
    """Says how much time a step may take.

    Parameters
    ----------
    seconds, deterministic
        Limits of the whole solve; ``None`` for none.
    """

    def __init__(self, seconds: float | None, deterministic: float | None) -> None:
        self._began = monotonic()
        self._seconds = seconds
        self._deterministic = deterministic
        self._spent = 0.0

    def is_limited(self) -> bool:
        """Say whether there is any limit."""
        return self._seconds is not None or self._deterministic is not None

    def spend(self, deterministic: float) -> None:
        """Note the deterministic time of a run."""
        self._spent += deterministic

    def seconds_until(self, share: float) -> float | None:
        """Return the wall seconds until a share of the limit is used; ``None`` without limit."""
        if self._seconds is None:
            return None
        return max(0.0, self._began + share * self._seconds - monotonic())

    def deterministic_left(self, at_most: float | None = None) -> float | None:
        """Return the deterministic time that a run may take; ``None`` without limit."""
        limits = [] if at_most is None else [at_most]
        if self._deterministic is not None:
            limits.append(max(0.0, self._deterministic - self._spent))
        return min(limits, default=None)

    def is_over(self, share: float = 1.0) -> bool:
        """Say whether a share of the limit, or all deterministic time, is used."""
        seconds, deterministic = self.seconds_until(share), self.deterministic_left()
        return seconds == 0.0 or deterministic == 0.0
