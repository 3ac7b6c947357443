"""Intermediate tensors that are expected to stay in scratchpads between their groups."""

from dataclasses import dataclass

from spmilp.frontend.graph import Network
from spmilp.units import Bytes

USABLE_SHARE = 0.5
"""Of all scratchpads; the rest is for the working sets of tasks, weights among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """Tensors expected to lie in scratchpads.

    Parameters
    ----------
    kept
        Tensors that stay from the group that computes them to the last one that reads them; others
        are stored in DRAM and loaded again.
    live
        For each group, the bytes of kept tensors that are live while it runs, its own output
        included.
    """

    kept: frozenset[str]
    live: tuple[Bytes, ...]


def expected_residence(network: Network, aggregate: Bytes) -> Residence:
    """Decide which tensors stay in scratchpads of ``aggregate`` bytes in all.

    Where the live tensors of a group exceed their share of the scratchpads, those whose next use is
    furthest go to DRAM (Belady, IBM Systems Journal 5(2), 1966), the group's own operands last.
    """
    uses: dict[str, list[int]] = {group.output: [] for group in network.groups}
    for group in network.groups:
        for name in group.inputs:
            if name in uses:
                uses[name].append(group.index)
    capacity = int(aggregate * USABLE_SHARE)
    kept: set[str] = set()
    live: set[str] = set()
    for group in network.groups:
        kept.add(group.output)
        live.add(group.output)
        live = {name for name in live if _last_use(uses[name], group.index) >= group.index}
        while sum(network.tensors[name].bytes for name in live) > capacity:
            furthest = max(live, key=lambda name: (_next_use(uses[name], group.index), name))
            live.remove(furthest)
            kept.remove(furthest)
    return Residence(kept=frozenset(kept), live=_live_bytes(network, uses, kept))


def _live_bytes(network: Network, uses: dict[str, list[int]], kept: set[str]) -> tuple[Bytes, ...]:
    changes = [0] * (len(network.groups) + 1)
    for group in network.groups:
        if group.output in kept:
            size = network.tensors[group.output].bytes
            changes[group.index] += size
            changes[_last_use(uses[group.output], group.index) + 1] -= size
    live, total = [], 0
    for change in changes[:-1]:
        total += change
        live.append(total)
    return tuple(live)


def _last_use(uses: list[int], computed: int) -> int:
    return uses[-1] if uses else computed


def _next_use(uses: list[int], now: int) -> int:
    return next((use for use in uses if use >= now), now)
