"""Switches of the large-neighbourhood search, so that a benchmark can show what each buys."""

from dataclasses import dataclass
from enum import Enum


class Step(Enum):
    """Steps from one schedule with open addresses to the next.

    ``ADVANCE_LOADS``
        Some loads go first.
    ``REASSIGN``
        Tasks change cores.
    """

    ADVANCE_LOADS = 0
    REASSIGN = 1


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
    advance_loads, reassignment
        The steps of that name are taken.
    """

    several_initial_solutions: bool = True
    repacking: bool = True
    redundant_transfers: bool = True
    dram_bypass: bool = True
    advance_loads: bool = True
    reassignment: bool = True

    @property
    def steps(self) -> tuple[Step, ...]:
        """The kinds of steps that are taken."""
        wanted = {
            Step.ADVANCE_LOADS: self.advance_loads,
            Step.REASSIGN: self.reassignment,
        }
        return tuple(step for step, is_wanted in wanted.items() if is_wanted)
