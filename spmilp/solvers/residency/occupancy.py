"""What may lie in a memory at which step."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from spmilp.solvers.residency.scope import Run
from spmilp.solvers.residency.use_points import Location
from spmilp.solvers.residency.variables import InPlaceWrite, PointVars, Variables
from spmilp.units import MemoryIdx


@dataclass(frozen=True, slots=True)
class Occupant:
    """A slice that lies in a memory at a step if its literal says so.

    Parameters
    ----------
    point
        Where its offset was chosen: at this use point, or at the one before.
    """

    location: Location
    point: PointVars
    literal: cp_model.IntVar


@dataclass(slots=True)
class Occupancy:
    """All that may lie in a memory at a step.

    Parameters
    ----------
    runs
        Those that may take place in this memory at this step.
    """

    memory: MemoryIdx
    step: int
    runs: list[Run] = field(default_factory=list)
    occupants: list[Occupant] = field(default_factory=list)
    in_place: list[InPlaceWrite] = field(default_factory=list)


class Occupancies:
    """Those of every memory on the chip, at each step at which it has a use point.

    At any other step nothing lies in the memory that does not lie there at the next of these.
    """

    def __init__(self, variables: Variables) -> None:
        self._tables = variables.tables
        self._found: dict[MemoryIdx, dict[int, Occupancy]] = defaultdict(dict)
        for run in variables.runs:
            memory = self._tables.pools[run.slot.pool].memory
            self._at(memory, run.slot.step).runs.append(run)
        for location, point in variables.all_points():
            self._at(location.memory, point.use.step)
        for pair in variables.in_place:
            self._at(pair.old.memory, pair.run.slot.step).in_place.append(pair)
        steps = {memory: sorted(some) for memory, some in self._found.items()}
        for location, points in variables.points.items():
            self._add_occupants(location, points, steps[location.memory])

    def all(self) -> list[Occupancy]:
        """Return all of them, memory by memory, in order of steps."""
        return [some[step] for _, some in sorted(self._found.items()) for step in sorted(some)]

    def blocks(self, location: Location) -> int:
        """Return the blocks that a slice takes."""
        return self._tables.blocks_of(*location)

    def scratch(self, run: Run) -> int:
        """Return the blocks of scratch that a run takes."""
        size = self._tables.problem.tasks[run.task].scratch
        return self._tables.blocks(size, self._tables.pools[run.slot.pool].memory)

    def _at(self, memory: MemoryIdx, step: int) -> Occupancy:
        return self._found[memory].setdefault(step, Occupancy(memory, step))

    def _add_occupants(self, location: Location, points: list[PointVars], steps: list[int]) -> None:
        for point, following in zip(points, [*points[1:], None], strict=True):
            step = point.use.step
            here = self._at(location.memory, step)
            here.occupants.append(Occupant(location, point, point.there))
            if following is None or point.kept_after is None:
                continue
            last = bisect_right(steps, following.use.step - 1)
            for other in steps[bisect_right(steps, step) : last]:
                occupants = self._at(location.memory, other).occupants
                occupants.append(Occupant(location, point, point.kept_after))
