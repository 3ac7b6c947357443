"""What may lie in a memory at which step, and at which offset."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from spmilp.solvers.formulation.tables import first_blocks
from spmilp.solvers.residency.scope import Run
from spmilp.solvers.residency.use_points import Location
from spmilp.solvers.residency.variables import InPlaceWrite, PointVars, Variables
from spmilp.units import Bytes, MemoryIdx


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


class Offsets:
    """The first block of each slice at each use point.

    Attributes
    ----------
    scratch
        The first block of the scratch of each run.
    """

    def __init__(self, variables: Variables, occupancies: Occupancies) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._occupancies = occupancies
        self._offsets: dict[tuple[Location, int], cp_model.IntVar] = {}
        self.scratch: dict[Run, cp_model.IntVar] = {}
        for location, points in variables.points.items():
            self._choose(location, points)
        for occupancy in occupancies.all():
            self._are_apart(occupancy)

    def offset(self, location: Location, step: int) -> cp_model.IntVar:
        """Return the first block of a slice at a use point."""
        return self._offsets[location, step]

    def _choose(self, location: Location, points: list[PointVars]) -> None:
        """Give a slice an offset at each use point; while it is kept, it is the same."""
        size = self._tables.problem.slices[location.slice].bytes
        for before, point in zip([None, *points], points, strict=False):
            offset = self._new(location.memory, size)
            self._offsets[location, point.use.step] = offset
            if before is not None and point.kept_before is not None:
                same = self._model.add(offset == self._offsets[location, before.use.step])
                same.only_enforce_if(point.kept_before)

    def _new(self, memory: MemoryIdx, size: Bytes) -> cp_model.IntVar:
        ranges = [list(one) for one in first_blocks(self._tables.machine.memories[memory], size)]
        return self._model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), "")

    def _are_apart(self, occupancy: Occupancy) -> None:
        """Keep what lies in a memory at one step apart; what is overwritten counts once."""
        model, extents = self._model, []
        for occupant in occupancy.occupants:
            offset = self._offsets[occupant.location, occupant.point.use.step]
            writes = [pair for pair in occupancy.in_place if pair.old == occupant.location]
            blocks = self._occupancies.blocks(occupant.location)
            lies = self._unless_overwritten(occupant, writes)
            extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, lies, ""))
            for pair in writes:
                new = self._offsets[pair.new, occupancy.step]
                own = self._occupancies.blocks(pair.new)
                happens = self._vars.in_place[pair]
                model.add(offset == new).only_enforce_if(happens)
                if blocks > own:
                    rest = offset + own, blocks - own, happens
                    extents.append(model.new_optional_fixed_size_interval_var(*rest, ""))
        for run in occupancy.runs:
            blocks = self._occupancies.scratch(run)
            if blocks:
                offset = self._new(occupancy.memory, self._tables.problem.tasks[run.task].scratch)
                self.scratch[run] = offset
                runs = self._vars.runs[run]
                extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, runs, ""))
        model.add_no_overlap(extents)

    def _unless_overwritten(
        self, occupant: Occupant, writes: list[InPlaceWrite]
    ) -> cp_model.IntVar:
        """Return whether a slice has blocks of its own."""
        if not writes:
            return occupant.literal
        lies = self._model.new_bool_var("")
        overwritten = sum(self._vars.in_place[pair] for pair in writes)
        self._model.add(lies + overwritten == occupant.literal)
        return lies
