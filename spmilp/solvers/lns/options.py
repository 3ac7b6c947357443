"""Switches of the large-neighbourhood search, so that a benchmark can show what each buys."""

from dataclasses import dataclass
from enum import Enum

from spmilp.solvers.lns.neighbourhoods import Neighbourhood


class Step(Enum):
    """Some activities wait, some loads go first, CP-SAT times a window, or tasks change cores."""

    PERTURB = 0
    ADVANCE_LOADS = 1
    WINDOW = 2
    REASSIGN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LnsOptions:
    """What the search does.

    Parameters
    ----------
    starts
        Several of the list scheduler's schedules are tried, not only the shortest.
    opening
        Addresses are chosen anew; without it a plan is only double_justified.
    reloads
        Transfers that have become needless are dropped.
    sparing
        Transfers of DRAMs become copies between scratchpads where these have room.
    kicks, pushes
        The steps that go on after that: some activities wait, or some loads go first.
    windows
        The kinds of windows that CP-SAT decides; no steps of that sort for none.
    reassignment
        Steps in which tasks change cores.
    """

    starts: bool = True
    opening: bool = True
    reloads: bool = True
    sparing: bool = True
    kicks: bool = True
    pushes: bool = True
    windows: tuple[Neighbourhood, ...] = tuple(Neighbourhood)
    reassignment: bool = True

    @property
    def steps(self) -> tuple[Step, ...]:
        """The kinds of steps that are taken."""
        wanted = {
            Step.PERTURB: self.kicks,
            Step.ADVANCE_LOADS: self.pushes,
            Step.WINDOW: bool(self.windows),
            Step.REASSIGN: self.reassignment,
        }
        return tuple(step for step, is_wanted in wanted.items() if is_wanted)
