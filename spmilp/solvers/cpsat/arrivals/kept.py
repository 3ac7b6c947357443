"""What a memory keeps for the tasks that will read it."""

from collections import defaultdict
from collections.abc import Mapping

import networkx as nx
from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.arrivals.arrivals import Arrivals
from spmilp.solvers.cpsat.arrivals.kinds import Key
from spmilp.solvers.cpsat.strengthen import Demand
from spmilp.solvers.cpsat.variables import Literal, Number, Variables
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Kept:
    """For each read of a private slice: since when its bytes have lain in the memory.

    Of a plan, look at the residency that serves the read. Either the task is the first that reads
    it, and the residency is as old as the arrival that fills it, or as the end of the task that
    wrote it; or another task there read it before, and since the end of the last such task the
    bytes have been kept. Each task and each writer is followed by one next reader at most. So the
    memory has the slice's bytes from then until the task starts (where cores read remotely, until
    it ends, for then the working sets of tasks leave operands out). One residency counts at no
    cycle twice, for between two of its readers there is none.
    """

    def __init__(
        self,
        cp: cp_model.CpModel,
        tables: ProblemTables,
        variables: Variables,
        arrivals: Arrivals,
        local: Mapping[tuple[TaskIdx, SliceIdx, MemoryIdx], Literal],
    ) -> None:
        self._cp = cp
        self._tables = tables
        self._variables = variables
        self._arrivals = arrivals
        self._local = local
        self._earlier = _ancestors(tables)
        self.demands: list[Demand] = []

    def add(self) -> None:
        """Add the constraints, and note the demands on the memories."""
        for slice_, memory in self._arrivals.private():
            self._add(slice_, memory)

    def _add(self, slice_: SliceIdx, memory: MemoryIdx) -> None:
        written = self._written(slice_, memory)
        readers = self._arrivals.readers(slice_, memory)
        following: dict[TaskIdx | None, list[Literal]] = defaultdict(list)
        fresh = []
        for reader in readers:
            local = self._local[reader, slice_, memory]
            since = self._keep(slice_, memory, reader, local)
            choices = []
            arrival = self._arrivals.into.get(Key(slice_, memory, reader))
            if arrival is not None:
                self._cp.add(since == arrival.start).only_enforce_if(arrival.present)
                start = self._variables.tasks[reader].start
                self._cp.add(start >= arrival.valid).only_enforce_if(arrival.present)
                choices.append(arrival.present)
                fresh.append(arrival.present)
            for before, (here, end) in self._before(slice_, memory, reader, written).items():
                kept = self._variables.literal(
                    f"slice{slice_} in memory{memory} for task{reader} since task{before}"
                )
                self._cp.add_implication(kept, here)
                self._cp.add(since == end).only_enforce_if(kept)
                following[before].append(kept)
                choices.append(kept)
            self._cp.add(sum(choices) == local)
        for some in following.values():
            self._cp.add_at_most_one(some)
        for reader in readers:
            here = [] if written is None else [written[0]]
            local = self._local[reader, slice_, memory]
            self._cp.add_bool_or([*fresh, *here, ~local])

    def _keep(self, slice_: SliceIdx, memory: MemoryIdx, reader: TaskIdx, local: Literal) -> Number:
        """Return the cycle since which the bytes are kept for a reader."""
        name = f"slice{slice_} in memory{memory} kept for task{reader}"
        times = self._variables.tasks[reader]
        since, cycles = self._variables.cycle(f"{name} since"), self._variables.cycle(name)
        until = times.start if self._tables.machine.remote is None else times.end
        interval = self._cp.new_optional_interval_var(since, cycles, until, local, name)
        blocks = self._tables.blocks(self._tables.problem.slices[slice_].bytes, memory)
        self.demands.append(Demand(memory, interval, blocks))
        return since

    def _written(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[Literal, Number] | None:
        """Return whether the slice is written in this memory, and when; ``None`` if never."""
        writer = self._tables.writers[self._arrivals.buffer(slice_)]
        if writer is None or memory not in self._variables.tasks[writer].memories:
            return None
        times = self._variables.tasks[writer]
        return times.memories[memory], times.end

    def _before(
        self,
        slice_: SliceIdx,
        memory: MemoryIdx,
        reader: TaskIdx,
        written: tuple[Literal, Number] | None,
    ) -> dict[TaskIdx | None, tuple[Literal, Number]]:
        """Return, for each task after which the bytes may be kept for a reader, its end.

        ``None`` stands for the task that writes the slice.
        """
        found: dict[TaskIdx | None, tuple[Literal, Number]] = {}
        if written is not None:
            found[None] = written
        for other in self._arrivals.readers(slice_, memory):
            if other != reader and reader not in self._earlier[other]:
                local = self._local[other, slice_, memory]
                found[other] = local, self._variables.tasks[other].end
        return found


def _ancestors(tables: ProblemTables) -> list[frozenset[TaskIdx]]:
    """Return, for each task, all that must have ended before it starts."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(tables.problem.tasks)))
    for task, predecessors in enumerate(tables.predecessors):
        graph.add_edges_from((before, task) for before in predecessors)
    return [frozenset(nx.ancestors(graph, task)) for task in sorted(graph)]
