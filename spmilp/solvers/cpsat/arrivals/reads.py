"""Reads find what is there: what has arrived, was written there, or lies in another memory."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.arrivals.arrivals import Arrivals
from spmilp.solvers.cpsat.arrivals.kinds import Key
from spmilp.solvers.cpsat.arrivals.origins import Origins
from spmilp.solvers.cpsat.variables import Literal, Number, Variables
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Reads:
    """Constraints of the reads for which only first arrivals are in the model.

    Attributes
    ----------
    local
        For each read and each memory in which its task may run: whether it does so, and reads what
        lies in that very memory.
    """

    def __init__(
        self,
        cp: cp_model.CpModel,
        tables: ProblemTables,
        variables: Variables,
        arrivals: Arrivals,
        origins: Origins,
    ) -> None:
        self._cp = cp
        self._tables = tables
        self._variables = variables
        self._arrivals = arrivals
        self._origins = origins
        self._with_buffer: dict[tuple[SliceIdx, MemoryIdx], Literal] = {}
        self.local: dict[tuple[TaskIdx, SliceIdx, MemoryIdx], Literal] = {}

    def add(self) -> None:
        """Have each read find its slice."""
        for task in self._tables.problem.tasks:
            times = self._variables.tasks[task.index]
            extra: Number = 0
            for read in task.reads:
                for memory, here in times.memories.items():
                    local = here
                    if self._tables.machine.remote is not None:
                        local = self._variables.literal(f"task{task.index} reads {read} here")
                        extra += self._read_remotely(task.index, read, memory, here, local)
                    self.local[task.index, read, memory] = local
                    if not self._arrivals.is_private(read, memory):
                        self._read_locally(times.start, read, memory, local)
            if self._tables.machine.remote is not None:
                for pool, here in times.pools.items():
                    least = self._tables.cycles_on(task.index, pool)
                    self._cp.add(times.size >= least + extra).only_enforce_if(here)

    def _read_remotely(
        self, task: TaskIdx, read: SliceIdx, memory: MemoryIdx, here: Literal, local: Literal
    ) -> Number:
        """Return the least cycles that reading elsewhere adds, if the read is not local."""
        holders = dict.fromkeys((read, self._arrivals.buffer(read)))
        cycles = [
            found
            for holder in holders
            for other in self._arrivals.candidates.of(holder)
            if other != memory
            for found in (self._tables.remote_cycles(read, other, memory),)
            if found is not None
        ]
        self._cp.add_implication(local, here)
        if not cycles:
            self._cp.add_implication(here, local)
            return 0
        away = self._variables.literal(f"task{task} reads slice{read} away from memory{memory}")
        self._cp.add(away + local == here)
        if self._origins.begins_in_dram(read):
            self._origins.came_out_of_dram(read, self._variables.tasks[task].start, away)
        return min(cycles) * away

    def _read_locally(
        self, start: Number, read: SliceIdx, memory: MemoryIdx, local: Literal
    ) -> None:
        """The slice or its buffer arrived here before, or began here."""
        buffer = self._arrivals.buffer(read)
        if self._tables.problem.buffers[buffer].starts_in == memory:
            return
        writer = self._tables.writers[buffer]
        needed = [local]
        if writer is not None and memory in self._variables.tasks[writer].memories:
            needed.append(~self._variables.tasks[writer].memories[memory])
        keys = [Key(holder, memory, None) for holder in dict.fromkeys((read, buffer))]
        able = [key for key in keys if key in self._arrivals.into]
        if not able:
            self._cp.add_bool_or([~literal for literal in needed])
        for key in able:
            conditions = list(needed)
            if len(able) > 1:
                with_buffer = self._comes_with_its_buffer(read, memory)
                conditions.append(with_buffer if key.slice == buffer else ~with_buffer)
            arrival = self._arrivals.into[key]
            self._cp.add_bool_or([arrival.present, *(~literal for literal in conditions)])
            self._cp.add(start >= arrival.valid).only_enforce_if(conditions)

    def _comes_with_its_buffer(self, read: SliceIdx, memory: MemoryIdx) -> Literal:
        key = read, memory
        if key not in self._with_buffer:
            name = f"slice{read} in memory{memory} with its buffer"
            self._with_buffer[key] = self._variables.literal(name)
        return self._with_buffer[key]
