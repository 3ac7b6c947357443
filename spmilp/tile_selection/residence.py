"""Intermediate tensors: which are expected to stay in scratchpads."""

from dataclasses import dataclass
from itertools import accumulate

from spmilp.frontend.graph import Network
from spmilp.units import Bytes

USABLE_SHARE = 0.5
"""Usable share of all scratchpads; the rest is for working sets of tasks, weights among them."""


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
    uses: dict[str, list[int]] = {group.output: [group.index] for group in network.groups}
    for group in network.groups:
        for name in group.inputs:
            if name in uses:
                uses[name].append(group.index)
    capacity = int(aggregate * USABLE_SHARE)
    size = {name: network.tensors[name].bytes for name in uses}
    kept: set[str] = set()
    live: set[str] = set()
    for now in network.groups:
        kept.add(now.output)
        live = {name for name in {*live, now.output} if uses[name][-1] >= now.index}
        while sum(size[name] for name in live) > capacity:
            # The next use of what nobody reads is the group that computes it.
            next_use = {
                name: next((use for use in uses[name][1:] if use >= now.index), now.index)
                for name in live
            }
            furthest = max(next_use, key=lambda name: (next_use[name], name))
            live.remove(furthest)
            kept.remove(furthest)
    changes = [0] * (len(network.groups) + 1)
    for name in kept:
        changes[uses[name][0]] += size[name]
        changes[uses[name][-1] + 1] -= size[name]
    return Residence(kept=frozenset(kept), live=tuple(accumulate(changes))[:-1])
