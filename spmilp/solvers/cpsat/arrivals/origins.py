"""What arrives was somewhere before."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.arrivals.arrivals import Arrivals
from spmilp.solvers.cpsat.arrivals.kinds import DRAM, ELSEWHERE, Arrival
from spmilp.solvers.cpsat.variables import Literal, Number, Variables
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import SliceIdx


class Origins:
    """Constraints on the order of arrivals, stores and the tasks that write."""

    def __init__(
        self, cp: cp_model.CpModel, tables: ProblemTables, variables: Variables, arrivals: Arrivals
    ) -> None:
        self._cp = cp
        self._tables = tables
        self._variables = variables
        self._arrivals = arrivals
        self._first: dict[SliceIdx, tuple[Number, list[Literal]]] = {}

    def add(self) -> None:
        """Have arrivals follow their origin, and stores the task that writes."""
        for key, arrival in self._arrivals.into.items():
            writer = self._tables.writers[self._arrivals.buffer(key.slice)]
            if writer is not None:
                end = self._variables.tasks[writer].end
                self._cp.add(arrival.start >= end).only_enforce_if(arrival.present)
            if self.begins_in_dram(key.slice):
                if ELSEWHERE in arrival.kinds:
                    kind = arrival.kinds[ELSEWHERE]
                    self.came_out_of_dram(key.slice, arrival.start, kind.taken)
            elif DRAM in arrival.kinds:
                self._was_stored(key.slice, arrival)
        for slice_, store in self._arrivals.stores.items():
            self._follows_the_writer(slice_, store)

    def begins_in_dram(self, slice_: SliceIdx) -> bool:
        """Say whether a slice lies in a DRAM at cycle 0."""
        origin = self._tables.problem.buffers[self._arrivals.buffer(slice_)].starts_in
        return origin is not None and self._arrivals.is_dram(origin)

    def came_out_of_dram(self, slice_: SliceIdx, start: Number, literal: Literal) -> None:
        """What comes from elsewhere, or is read there, came out of a DRAM before."""
        if slice_ not in self._first:
            self._first[slice_] = self._first_out_of_dram(slice_)
        first, leaders = self._first[slice_]
        self._cp.add_bool_or([*leaders, ~literal])
        self._cp.add(start >= first).only_enforce_if(literal)

    def _first_out_of_dram(self, slice_: SliceIdx) -> tuple[Number, list[Literal]]:
        first = self._variables.cycle(f"slice{slice_} first out of DRAM")
        holders = {slice_, self._arrivals.buffer(slice_)}
        leaders = []
        for key, arrival in self._arrivals.into.items():
            if key.slice in holders and DRAM in arrival.kinds:
                leads = self._variables.literal(f"{key} first out of DRAM")
                self._cp.add_implication(leads, arrival.kinds[DRAM].taken)
                self._cp.add(first >= arrival.valid).only_enforce_if(leads)
                leaders.append(leads)
        return first, leaders

    def _was_stored(self, slice_: SliceIdx, arrival: Arrival) -> None:
        """What comes out of a DRAM where it was not at first was stored before."""
        taken = arrival.kinds[DRAM].taken
        stores = self._arrivals.stores
        holders = [h for h in dict.fromkeys((slice_, self._arrivals.buffer(slice_))) if h in stores]
        found = []
        for holder in holders:
            this = taken
            if len(holders) > 1:
                this = self._variables.literal(f"slice{slice_} stored as slice{holder}")
            self._cp.add_implication(this, stores[holder].present)
            self._cp.add(arrival.start >= stores[holder].valid).only_enforce_if(this)
            found.append(this)
        if found != [taken]:
            self._cp.add_bool_or([*found, ~taken])

    def _follows_the_writer(self, slice_: SliceIdx, store: Arrival) -> None:
        buffer = self._arrivals.buffer(slice_)
        writer = self._tables.writers[buffer]
        if writer is not None:
            self._cp.add(store.start >= self._variables.tasks[writer].end)
        self._cp.add(self._variables.makespan >= store.valid).only_enforce_if(store.present)
        ends = self._tables.problem.buffers[buffer].ends_in
        if slice_ == buffer and ends is not None and self._arrivals.is_dram(ends):
            self._cp.add(store.present == 1)
