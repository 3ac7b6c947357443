"""What a memory keeps for the tasks that will read it."""

from collections import defaultdict
from collections.abc import Mapping

from spmilp.solvers.cpsat.load_relaxation.loads import LoadKey, Loads
from spmilp.solvers.cpsat.strengthen import Demand
from spmilp.solvers.cpsat.variables import Literal, Number
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Retention:
    """For each read of a private slice: since when its bytes have lain in the memory.

    Of a plan, look at the residency that serves the read. Either the task is the first that reads
    it, and the residency is as old as the load that fills it, or as the end of the task that wrote
    it; or another task there read it before, and since the end of the last such task the bytes have
    been kept. Each task and each writer is followed by one next reader at most. So the memory has
    the slice's bytes from then until the task starts (where cores read remotely, until it ends, for
    then the working sets of tasks leave operands out). One residency counts at no cycle twice, for
    between two of its readers there is none.
    """

    def __init__(
        self, loads: Loads, local: Mapping[tuple[TaskIdx, SliceIdx, MemoryIdx], Literal]
    ) -> None:
        self._loads = loads
        self._vars = loads.variables
        self._model = loads.variables.model
        self._tables = loads.tables
        self._local = local
        self.demands: list[Demand] = []

    def add(self) -> None:
        """Add the constraints, and note the demands on the memories."""
        for slice_, memory in self._loads.private():
            self._add(slice_, memory)

    def _add(self, slice_: SliceIdx, memory: MemoryIdx) -> None:
        written = self._written(slice_, memory)
        readers = self._loads.readers(slice_, memory)
        following: dict[TaskIdx | None, list[Literal]] = defaultdict(list)
        fresh = []
        for reader in readers:
            local = self._local[reader, slice_, memory]
            since = self._keep(slice_, memory, reader, local)
            choices = []
            load = self._loads.into.get(LoadKey(slice_, memory, reader))
            if load is not None:
                self._model.add(since == load.start).only_enforce_if(load.present)
                start = self._vars.tasks[reader].start
                self._model.add(start >= load.valid).only_enforce_if(load.present)
                choices.append(load.present)
                fresh.append(load.present)
            for before, (here, end) in self._before(slice_, memory, reader, written).items():
                kept = self._vars.literal(
                    f"slice{slice_} in memory{memory} for task{reader} since task{before}"
                )
                self._model.add_implication(kept, here)
                self._model.add(since == end).only_enforce_if(kept)
                following[before].append(kept)
                choices.append(kept)
            self._model.add(sum(choices) == local)
        for some in following.values():
            self._model.add_at_most_one(some)
        for reader in readers:
            here = [] if written is None else [written[0]]
            local = self._local[reader, slice_, memory]
            self._model.add_bool_or([*fresh, *here, ~local])

    def _keep(self, slice_: SliceIdx, memory: MemoryIdx, reader: TaskIdx, local: Literal) -> Number:
        """Return the cycle since which the bytes are kept for a reader."""
        name = f"slice{slice_} in memory{memory} kept for task{reader}"
        times = self._vars.tasks[reader]
        since, cycles = self._vars.cycle(f"{name} since"), self._vars.cycle(name)
        until = times.start if self._tables.machine.remote is None else times.end
        interval = self._model.new_optional_interval_var(since, cycles, until, local, name)
        self.demands.append(Demand(memory, interval, self._tables.blocks_of(slice_, memory)))
        return since

    def _written(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[Literal, Number] | None:
        """Return whether the slice is written in this memory, and when; ``None`` if never."""
        writer = self._tables.writers[self._loads.buffer(slice_)]
        if writer is None or memory not in self._vars.tasks[writer].memories:
            return None
        times = self._vars.tasks[writer]
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
        for other in self._loads.readers(slice_, memory):
            if other != reader and reader not in self._tables.ancestors[other]:
                local = self._local[other, slice_, memory]
                found[other] = local, self._vars.tasks[other].end
        return found
