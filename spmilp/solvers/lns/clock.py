"""Wall time of one solve."""

from time import monotonic


class Clock:
    """Counts down from a limit in seconds; ``None`` for none."""

    def __init__(self, seconds: float | None) -> None:
        self._began = monotonic()
        self._seconds = seconds

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Return the seconds until a share of the limit is used; ``None`` without limit."""
        if self._seconds is None:
            return None
        return max(0.0, self._began + share * self._seconds - monotonic())

    def is_over(self, share: float = 1.0) -> bool:
        """Say whether that share is used."""
        return self.seconds_left(share) == 0.0
