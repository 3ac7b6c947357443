"""Limits of one call, counted down, and what it has cost so far."""

import time

from spmilp.packing.result import PackingOptions, PackingStatistics


class Clock:
    """Wall seconds and search nodes since it was made."""

    def __init__(self, options: PackingOptions) -> None:
        self._began = time.perf_counter()
        self._options = options
        self.nodes = 0
        self.restarts = 0
        self.memo_hits = 0

    @property
    def seconds(self) -> float:
        """Wall seconds since the call began."""
        return time.perf_counter() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Wall seconds until the limit; ``None`` when there is none."""
        limit = self._options.time_limit
        return None if limit is None else max(0.0, limit - self.seconds)

    @property
    def nodes_left(self) -> int | None:
        """Nodes until the limit; ``None`` when there is none."""
        limit = self._options.node_limit
        return None if limit is None else max(0, limit - self.nodes)

    @property
    def is_up(self) -> bool:
        """Whether a limit has been reached."""
        return self.seconds_left == 0.0 or self.nodes_left == 0

    def statistics(self, source: str) -> PackingStatistics:
        """Return what was spent until now."""
        return PackingStatistics(
            nodes=self.nodes,
            restarts=self.restarts,
            memo_hits=self.memo_hits,
            seconds=self.seconds,
            source=source,
        )
