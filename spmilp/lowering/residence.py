"""Which intermediate tensors are expected to stay in scratchpads between their groups."""

from spmilp.frontend.graph import Network
from spmilp.units import Bytes

USABLE_SHARE = 0.75
"""Of all scratchpads; the rest is for weights, halos and what is on its way."""


def kept_on_chip(network: Network, aggregate: Bytes) -> frozenset[str]:
    """Return the tensors that fit all scratchpads together while they are live.

    Where the live tensors of a group exceed the scratchpads, those whose next use is furthest go to
    DRAM (Belady, IBM Systems Journal 5(2), 1966), the group's own operands last.
    """
    uses: dict[str, list[int]] = {group.output: [] for group in network.groups}
    for group in network.groups:
        for name in group.inputs:
            if name in uses:
                uses[name].append(group.index)
    room = int(aggregate * USABLE_SHARE)
    kept: set[str] = set()
    live: set[str] = set()
    for group in network.groups:
        kept.add(group.output)
        live.add(group.output)
        live = {name for name in live if uses[name] and uses[name][-1] >= group.index}
        while sum(network.tensors[name].bytes for name in live) > room:
            furthest = max(live, key=lambda name: (_next_use(uses[name], group.index), name))
            live.remove(furthest)
            kept.remove(furthest)
    return frozenset(kept)


def _next_use(uses: list[int], now: int) -> int:
    return next(use for use in uses if use >= now)
