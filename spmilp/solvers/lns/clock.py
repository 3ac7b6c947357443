"""Wall time of one solve."""

from time import monotonic


class Clock:
    """Counts down from a limit in seconds; ``None`` for none."""

    def __init__(self, seconds: float | None) -> None:
        self._until = None if seconds is None else monotonic() + seconds

    def seconds_left(self) -> float | None:
        """Return the seconds that are left, 0 when time is over; ``None`` without limit."""
        return None if self._until is None else max(0.0, self._until - monotonic())

    def is_over(self) -> bool:
        """Say whether the time is over."""
        return self.seconds_left() == 0.0
