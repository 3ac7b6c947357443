"""Switches of the large-neighbourhood search, so that a benchmark can show what each buys."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LnsOptions:
    """What the search does.

    Parameters
    ----------
    several_initial_solutions
        Several of the list scheduler's schedules are tried, not only the shortest.
    repacking
        Addresses are chosen anew; without it a plan is only justified.
    redundant_transfers
        Transfers that have become redundant are dropped.
    dram_bypass
        Transfers of DRAMs become copies between scratchpads where these have capacity.
    advance_loads
        Steps in which some loads go first.
    reassignment
        Steps in which tasks change cores.
    """

    several_initial_solutions: bool = True
    repacking: bool = True
    redundant_transfers: bool = True
    dram_bypass: bool = True
    advance_loads: bool = True
    reassignment: bool = True
