"""Options and results of a packing run, and the clock that counts its limits down."""

import time
from dataclasses import dataclass
from enum import StrEnum

from spmilp.units import Bytes


class PackingStatus(StrEnum):
    """How a packing run ended.

    ``optimal``
        There are offsets, and no packing is lower.
    ``feasible``
        There are offsets inside the capacity.
    ``infeasible``
        Proven: there are no offsets inside the capacity.
    ``unknown``
        A limit was reached without offsets and without a proof.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingOptions:
    """Limits and settings.

    Parameters
    ----------
    time_limit
        Wall seconds; ``None`` for no limit.
    node_limit
        Items placed by the search, all branches counted; ``None`` for no limit.
    seed
        The same seed, options and problem give the same answer when no time limit strikes.
    conflict
        Whether a proof that there is no packing is narrowed down to few items.
    """

    time_limit: float | None = None
    node_limit: int | None = None
    seed: int = 0
    conflict: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The answer.

    Parameters
    ----------
    offsets
        Of each item, in bytes; ``None`` when none were found.
    height
        The highest byte in use plus one; ``None`` without offsets.
    bound
        Proven: no packing is lower. Where there is none inside the capacity, this exceeds it.
    conflict
        Items, by position, that cannot be packed together inside the capacity, with the reserved
        ranges; only when infeasible and asked for. Few, though not always the fewest.
    nodes, restarts
        Items placed by the search over all branches, and runs of it.
    seconds
        Wall seconds with those of preparation.
    source
        What found the offsets or the proof: ``bound``, the name of a heuristic or ``search``; empty
        when nothing did.
    """

    status: PackingStatus
    offsets: tuple[Bytes, ...] | None
    height: Bytes | None
    bound: Bytes
    conflict: tuple[int, ...] | None = None
    nodes: int = 0
    restarts: int = 0
    seconds: float = 0.0
    source: str = ""


class Clock:
    """Wall seconds and the work of the search since it was made."""

    def __init__(self, options: PackingOptions) -> None:
        self._began = time.perf_counter()
        self._options = options
        self.nodes = self.restarts = 0

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes and efforts of the methods, chosen on MiniMalloc's challenging instances.

    Parameters
    ----------
    items_for_gaps
        Items up to which heuristics look for gaps; their time is quadratic.
    conflicts
        Directed pairs up to which the search is tried; it keeps them all in memory.
    memo_states
        Failed states that are remembered at one capacity, at most: a power of 2.
    slice
        Nodes between two looks at the clock.
    short_run, growth, noise
        Nodes per item of the first runs, by how much each rotation's are longer, and the spread of
        the keys from the second rotation on.
    forgets_after
        Nodes after which weights are forgotten and short runs are short again.
    first_long_run, long_share
        The first long run in short ones, and the nodes of long runs in nodes of short ones.
    first_budget
        Nodes at one height before another is tried; doubled when no height could be decided.
    nodes_per_proof, proofs
        Where a proof is narrowed down: nodes after which a smaller set counts as packable (a proof
        that is harder is of less use), and sets that are tried at most.
    """

    items_for_gaps: int = 20_000
    conflicts: int = 40_000_000
    memo_states: int = 2**20
    slice: int = 20_000
    short_run: int = 2
    growth: float = 1.02
    noise: float = 0.3
    forgets_after: int = 1_200_000
    first_long_run: int = 64
    long_share: float = 0.25
    first_budget: int = 40_000
    nodes_per_proof: int = 20_000
    proofs: int = 400


LIMITS = Limits()
