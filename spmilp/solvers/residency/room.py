"""Who may lie in a memory at which step."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.variables import Spot, Takeover, Variables
from spmilp.solvers.residency.visits import Home, Run
from spmilp.units import MemoryIdx


@dataclass(frozen=True, slots=True)
class Tenant:
    """A slice that lies in a memory at a step if its literal says so.

    Parameters
    ----------
    spot
        Where its offset was chosen: at this visit, or at the one before.
    """

    home: Home
    spot: Spot
    literal: cp_model.IntVar


@dataclass(slots=True)
class Crowd:
    """All that may lie in a memory at a step.

    Parameters
    ----------
    runs
        Those that may take place in this memory at this step.
    """

    memory: MemoryIdx
    step: int
    runs: list[Run] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)
    takeovers: list[Takeover] = field(default_factory=list)


class Room:
    """The crowds of every memory on the chip, at each step at which something visits it.

    At any other step nothing lies in the memory that does not lie there at the next of these.
    """

    def __init__(self, tables: ProblemTables, variables: Variables) -> None:
        self._tables = tables
        self._crowds: dict[MemoryIdx, dict[int, Crowd]] = defaultdict(dict)
        for run in variables.runs:
            self._crowd(tables.pools[run.turn.pool].memory, run.turn.step).runs.append(run)
        for home, spots in variables.spots.items():
            for spot in spots:
                self._crowd(home.memory, spot.visit.step)
        for pair in variables.takeovers:
            self._crowd(pair.old.memory, pair.run.turn.step).takeovers.append(pair)
        steps = {memory: sorted(crowds) for memory, crowds in self._crowds.items()}
        for home, spots in variables.spots.items():
            self._house(home, spots, steps[home.memory])

    def crowds(self) -> list[Crowd]:
        """Return all of them, memory by memory, in order of steps."""
        return [
            crowds[step] for _, crowds in sorted(self._crowds.items()) for step in sorted(crowds)
        ]

    def blocks(self, home: Home) -> int:
        """Return the blocks that a slice takes."""
        size = self._tables.problem.slices[home.slice].bytes
        return self._tables.blocks(size, home.memory)

    def scratch(self, run: Run) -> int:
        """Return the blocks of scratch that a run takes."""
        size = self._tables.problem.tasks[run.task].scratch
        return self._tables.blocks(size, self._tables.pools[run.turn.pool].memory)

    def _crowd(self, memory: MemoryIdx, step: int) -> Crowd:
        return self._crowds[memory].setdefault(step, Crowd(memory, step))

    def _house(self, home: Home, spots: list[Spot], steps: list[int]) -> None:
        for spot, following in zip(spots, [*spots[1:], None], strict=True):
            step = spot.visit.step
            self._crowd(home.memory, step).tenants.append(Tenant(home, spot, spot.there))
            if following is None or spot.stays is None:
                continue
            between = steps[
                bisect_right(steps, step) : bisect_right(steps, following.visit.step - 1)
            ]
            for other in between:
                self._crowd(home.memory, other).tenants.append(Tenant(home, spot, spot.stays))
