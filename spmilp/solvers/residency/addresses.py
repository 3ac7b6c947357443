"""An offset for every stay, in the model: no two slices share blocks at a step."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.tables import Tables, first_blocks
from spmilp.solvers.residency.room import Crowd, Room
from spmilp.solvers.residency.variables import Spot, Variables
from spmilp.solvers.residency.visits import Home
from spmilp.units import Bytes, MemoryIdx, TaskIdx


class Addresses:
    """The first block of each slice at each visit.

    Attributes
    ----------
    scratch
        The first block of each task's scratch.
    """

    def __init__(
        self, model: cp_model.CpModel, tables: Tables, variables: Variables, room: Room
    ) -> None:
        self._model = model
        self._tables = tables
        self._vars = variables
        self._room = room
        self._offsets: dict[tuple[Home, int], cp_model.IntVar] = {}
        self.scratch: dict[TaskIdx, cp_model.IntVar] = {}
        for home, spots in variables.spots.items():
            self._choose(home, spots)
        for crowd in room.crowds():
            self._are_apart(crowd)

    def offset(self, home: Home, step: int) -> cp_model.IntVar:
        """Return the first block of a slice at a visit."""
        return self._offsets[home, step]

    def _choose(self, home: Home, spots: list[Spot]) -> None:
        """Give a slice an offset at each visit; while it stays, it is the same."""
        size = self._tables.problem.slices[home.slice].bytes
        for before, spot in zip([None, *spots], spots, strict=False):
            offset = self._new(home.memory, size)
            self._offsets[home, spot.visit.step] = offset
            if before is not None and spot.came is not None:
                same = self._model.add(offset == self._offsets[home, before.visit.step])
                same.only_enforce_if(spot.came)

    def _new(self, memory: MemoryIdx, size: Bytes) -> cp_model.IntVar:
        ranges = [list(one) for one in first_blocks(self._tables.machine.memories[memory], size)]
        return self._model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), "")

    def _are_apart(self, crowd: Crowd) -> None:
        """Keep what lies in a memory at one step apart; what is taken over counts once."""
        model, extents = self._model, []
        for tenant in crowd.tenants:
            offset = self._offsets[tenant.home, tenant.spot.visit.step]
            heirs = [(pair, one) for pair, one in crowd.takeovers if pair.old == tenant.home]
            lies = tenant.literal
            if heirs:
                lies = model.new_bool_var("")
                model.add(lies + sum(one for _, one in heirs) == tenant.literal)
            blocks = self._room.blocks(tenant.home)
            extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, lies, ""))
            for pair, one in heirs:
                new, own = self._offsets[pair.new, crowd.step], self._room.blocks(pair.new)
                model.add(offset == new).only_enforce_if(one)
                if blocks > own:
                    rest = model.new_optional_fixed_size_interval_var(
                        offset + own, blocks - own, one, ""
                    )
                    extents.append(rest)
        if crowd.task is not None and self._room.scratch(crowd):
            size = self._tables.problem.tasks[crowd.task].scratch
            offset = self.scratch[crowd.task] = self._new(crowd.memory, size)
            extents.append(model.new_fixed_size_interval_var(offset, self._room.scratch(crowd), ""))
        model.add_no_overlap(extents)
