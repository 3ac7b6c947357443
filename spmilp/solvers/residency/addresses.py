"""An offset for every stay, in the model: no two slices share blocks at a step."""

from ortools.sat.python import cp_model

from spmilp.solvers.formulation.tables import ProblemTables, first_blocks
from spmilp.solvers.residency.room import Crowd, Room, Tenant
from spmilp.solvers.residency.variables import Spot, Takeover, Variables
from spmilp.solvers.residency.visits import Home, Run
from spmilp.units import Bytes, MemoryIdx


class Addresses:
    """The first block of each slice at each visit.

    Attributes
    ----------
    scratch
        The first block of the scratch of each run.
    """

    def __init__(
        self, model: cp_model.CpModel, tables: ProblemTables, variables: Variables, room: Room
    ) -> None:
        self._model = model
        self._tables = tables
        self._vars = variables
        self._room = room
        self._offsets: dict[tuple[Home, int], cp_model.IntVar] = {}
        self.scratch: dict[Run, cp_model.IntVar] = {}
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
            heirs = [pair for pair in crowd.takeovers if pair.old == tenant.home]
            blocks = self._room.blocks(tenant.home)
            lies = self._unless_taken_over(tenant, heirs)
            extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, lies, ""))
            for pair in heirs:
                new, own = self._offsets[pair.new, crowd.step], self._room.blocks(pair.new)
                happens = self._vars.takeovers[pair]
                model.add(offset == new).only_enforce_if(happens)
                if blocks > own:
                    rest = offset + own, blocks - own, happens
                    extents.append(model.new_optional_fixed_size_interval_var(*rest, ""))
        for run in crowd.runs:
            blocks = self._room.scratch(run)
            if blocks:
                offset = self._new(crowd.memory, self._tables.problem.tasks[run.task].scratch)
                self.scratch[run] = offset
                runs = self._vars.runs[run]
                extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, runs, ""))
        model.add_no_overlap(extents)

    def _unless_taken_over(self, tenant: Tenant, heirs: list[Takeover]) -> cp_model.IntVar:
        """Return whether a slice has blocks of its own."""
        if not heirs:
            return tenant.literal
        lies = self._model.new_bool_var("")
        taken = sum(self._vars.takeovers[pair] for pair in heirs)
        self._model.add(lies + taken == tenant.literal)
        return lies
