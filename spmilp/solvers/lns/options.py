"""Switches of the large-neighbourhood search, so that a benchmark can show what each buys."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LnsOptions:
    """What the search does.

    Parameters
    ----------
    starts
        Several of the list scheduler's schedules are tried, not only the shortest.
    opening
        Addresses are chosen anew; without it a plan is only compacted.
    reloads
        Transfers that have become needless are dropped.
    kicks, windows
        The steps that go on after that.
    """

    starts: bool = True
    opening: bool = True
    reloads: bool = True
    kicks: bool = True
    windows: bool = True
