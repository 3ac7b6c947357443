"""A plan as the starting point of a search: a value for every variable."""

from collections import defaultdict

from ortools.sat.python import cp_model

from spmilp.plan.plan import Residency
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.variables import Literal, Number, StayVars, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Item
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, ResidencyIdx


def add_hints(
    model: cp_model.CpModel, tables: ProblemTables, variables: Variables, reading: Reading
) -> None:
    """Hint every variable that decides something; the solver completes the rest.

    What the model has no stay for is left out: then the hint is no complete solution.
    """
    _Hints(model, tables, variables, reading).add()


def add_hints_of_tasks(
    model: cp_model.CpModel, tables: ProblemTables, variables: Variables, reading: Reading
) -> None:
    """Hint when and where tasks run."""
    _Hints(model, tables, variables, reading).add_tasks()


class _Hints:
    def __init__(
        self, model: cp_model.CpModel, tables: ProblemTables, variables: Variables, reading: Reading
    ) -> None:
        self._model = model
        self._tables = tables
        self._vars = variables
        self._reading = reading
        self._plan = reading.plan
        self._hinted: set[int] = set()
        self._taken: set[tuple[CandidateResidency, TransferOption]] = set()
        self._main: dict[CandidateResidency, Residency] = {}
        self._ends: dict[CandidateResidency, Cycles] = defaultdict(int)
        for residency in sorted(reading.needed, key=lambda r: (reading.valid(r), r)):
            stay = self._stay(residency)
            if stay is not None:
                self._main.setdefault(stay, self._plan.residencies[residency])

    def add(self) -> None:
        """Hint everything."""
        self._hint(self._vars.makespan, self._plan.claim.makespan)
        self.add_tasks()
        self._add_reads()
        self._add_pairs()
        self._add_ends_of_transfers()
        for stay, variables in self._vars.stays.items():
            self._add_stay(stay, variables)
        self._add_unions()
        self._add_offsets()

    def _stay(self, residency: ResidencyIdx) -> CandidateResidency | None:
        """Return the model's stay of a residency; a lasting one stands for all."""
        stay = self._reading.stay.get(residency)
        if stay is not None and stay[:2] in self._vars.structure.scope.lasting:
            stay = stay._replace(number=0)
        return stay if stay in self._vars.stays else None

    def add_tasks(self) -> None:
        """Hint the tasks alone."""
        for task, placement in zip(self._vars.tasks, self._plan.placements, strict=True):
            self._hint(task.start, placement.start)
            self._hint(task.size, placement.end - placement.start)
            self._hint(task.end, placement.end)
            core = self._tables.machine.cores[placement.core]
            for pool, literal in task.pools.items():
                self._hint(literal, placement.core in self._tables.pools[pool].cores)
            for memory, literal in task.memories.items():
                self._hint(literal, core.memory == memory)

    def _add_reads(self) -> None:
        in_place = {(task, old) for task, old, _ in self._reading.pairs_in_place()}
        for (task, position), read in self._vars.reads.items():
            placement = self._plan.placements[task]
            residency = placement.reads[position]
            served = self._stay(residency)
            for stay, literal in read.on.items():
                self._hint(literal, stay == served)
            for literal in read.late.values():
                self._hint(literal, False)
            if served is not None and (task, residency) not in in_place:
                self._ends[served] = max(self._ends[served], placement.end)

    def _add_pairs(self) -> None:
        shared = set()
        for task, old, new in self._reading.pairs_in_place():
            one, other = self._stay(old), self._stay(new)
            if one is not None and other is not None:
                shared.add((task, one, other))
                start = self._plan.placements[task].start
                self._ends[one] = max(self._ends[one], start)
        for pair, literal in self._vars.in_place.items():
            self._hint(literal, pair in shared)

    def _add_ends_of_transfers(self) -> None:
        for move in self._plan.transfers:
            if any(end in self._reading.needed for end in move.destinations):
                source = self._stay(move.source)
                if source is not None:
                    self._ends[source] = max(self._ends[source], move.end)

    def _add_stay(self, key: CandidateResidency, variables: StayVars) -> None:
        residency = self._main.get(key)
        self._hint(variables.present, residency is not None)
        if residency is None:
            self._add_absent(variables)
            return
        transfer = residency.filled_by_transfer
        valid = self._reading.valid(residency.index)
        start = residency.start
        if residency.filled_by_task is not None:
            start = self._plan.placements[residency.filled_by_task].start
        if transfer is not None:
            start = self._plan.transfers[transfer].start
        self._hint(variables.start, start)
        self._hint(variables.valid, valid)
        if variables.end is not None:
            end = max(self._ends[key], self._kept_until(key), valid)
            self._hint(variables.end, end)
            self._hint(self._vars.lasts.get(key, 0), end - start)
        if transfer is not None:
            self._hint(variables.cycles, valid - start)
        self._add_filling(key, variables, transfer)

    def _kept_until(self, key: CandidateResidency) -> Cycles:
        buffer = self._tables.problem.slices[key.slice].buffer
        ends = self._tables.problem.buffers[buffer].ends_in
        kept = key.slice == buffer and ends == key.memory
        return self._plan.claim.makespan if kept else 0

    def _add_filling(
        self, key: CandidateResidency, variables: StayVars, transfer: int | None
    ) -> None:
        source, engine, leader = None, None, None
        if transfer is not None:
            move = self._plan.transfers[transfer]
            source, engine = self._stay(move.source), move.engine
            lowest = min(move.destinations, key=lambda r: self._plan.residencies[r].memory)
            leader = self._stay(lowest)
        moved = transfer is not None and leader == key
        self._hint(variables.moved, moved)
        least = min((way.cycles for way in variables.moves), default=0)
        self._hint(variables.cycles, least)
        for other, literal in variables.arcs.items():
            self._hint(literal, moved and other == source)
        for literal in variables.late_arcs.values():
            self._hint(literal, False)
        for way, literal in variables.moves.items():
            from_there = source is not None and way.source == source.memory
            taken = moved and from_there and way.engine == engine
            self._hint(literal, taken)
            if taken:
                self._taken.add((key, way))
        for other, literal in variables.rides.items():
            self._hint(literal, transfer is not None and not moved and other == leader)

    def _add_absent(self, variables: StayVars) -> None:
        least = min((way.cycles for way in variables.moves), default=0)
        self._hint(variables.start, 0)
        self._hint(variables.valid, least)
        self._hint(variables.cycles, least)
        if variables.end is not None:
            self._hint(variables.end, least)
            self._hint(self._vars.lasts.get(variables.shape.stay, 0), least)
        self._hint(variables.moved, False)
        families = (variables.arcs, variables.late_arcs, variables.moves, variables.rides)
        for family in families:
            for literal in family.values():
                self._hint(literal, False)

    def _add_unions(self) -> None:
        for (key, ways), literal in self._vars.unions.items():
            self._hint(literal, any((key, way) in self._taken for way in ways))

    def _add_offsets(self) -> None:
        for (memory_index, item), offset in self._vars.offsets.items():
            alignment = self._tables.machine.memories[memory_index].alignment
            residency = self._residency_of(memory_index, item)
            if residency is not None:
                self._hint(offset, residency.offset // alignment)

    def _residency_of(self, memory: int, item: Item) -> Residency | None:
        if isinstance(item, CandidateResidency):
            return self._main.get(item)
        scratch = self._plan.placements[item].scratch
        if scratch is None or self._plan.residencies[scratch].memory != memory:
            return None
        return self._plan.residencies[scratch]

    def _hint(self, variable: Literal | Number, value: int) -> None:
        """Hint a variable once; constants and sums need none."""
        if not isinstance(variable, cp_model.IntVar) or variable.index in self._hinted:
            return
        self._hinted.add(variable.index)
        self._model.add_hint(variable, int(value))
