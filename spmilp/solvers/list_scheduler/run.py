"""One run of the compiled scheduler, with tables that grow until it has room."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from spmilp.errors import SpmilpError
from spmilp.machine.routes import Routes
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.arrays import (
    MachineArrays,
    ProblemArrays,
    machine_arrays,
    next_towards_dram,
    problem_arrays,
)
from spmilp.solvers.list_scheduler.decode import decode
from spmilp.solvers.list_scheduler.records import NONE, Ints
from spmilp.solvers.list_scheduler.space import new_space
from spmilp.solvers.list_scheduler.state import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    Board,
    Stop,
    Weights,
    new_state,
)
from spmilp.solvers.list_scheduler.timeline import new_timeline
from spmilp.units import MemoryIdx

FULL = {Stop.RESIDENCIES_FULL, Stop.TRANSFERS_FULL, Stop.TIMELINE_FULL, Stop.BLOCKS_FULL}
MOST_MEMORIES_WITH_ALL_PAIRS = 96


class Runner:
    """Runs the scheduler on one problem as often as asked.

    Parameters
    ----------
    problem
        What to schedule.
    routes
        Of its machine.
    """

    def __init__(self, problem: Problem, routes: Routes) -> None:
        self._problem = problem
        self._routes = routes
        self._flat: ProblemArrays = problem_arrays(problem)
        self._machine: MachineArrays | None = None
        self._pairs: set[tuple[MemoryIdx, MemoryIdx]] = set()
        self._room = 4 * (len(problem.slices) + self._flat.reads.size) + 256
        self._pool = 64 * (len(problem.machine.engines) + len(problem.machine.links)) + self._room
        self._blocks = 64

    def run(self, order: Ints, cores: Ints, weights: Weights) -> tuple[Stop, Board]:
        """Schedule the tasks in ``order`` on ``cores``; return why it stopped, and the tables."""
        machine = self._machine_for(cores)
        while True:
            board = Board(
                self._flat,
                machine,
                new_state(self._flat, machine, order, cores, self._room),
                new_space(self._problem.machine.memories, self._blocks),
                new_timeline(machine.capacity.size, self._pool),
                weights,
            )
            stop = Stop(decode(board, order))
            if stop not in FULL:
                return stop, board
            self._grow(stop)

    def why_it_stopped(self, stop: Stop, board: Board) -> str:
        """Return what kept the scheduler from a plan, in words."""
        problem = self._problem
        task = int(board.state.counts[COUNT_FAILED_TASK])
        who = f"task {problem.tasks[task].name}" if task != NONE else "what is there at cycle 0"
        if stop is Stop.NO_WAY:
            slice_ = problem.slices[int(board.state.counts[COUNT_FAILED_SLICE])]
            memory = problem.machine.memories[int(board.state.counts[COUNT_FAILED_MEMORY])]
            return (
                f"{who}: no engine can bring {problem.buffers[slice_.buffer].name} "
                f"({slice_.bytes} B) to {memory.name} in one transfer from where it lies; check "
                "the engines' reach, their longest transfer and their dimensions"
            )
        return (
            f"{who}: its working set fits its scratchpad by size, but not beside what must stay "
            "there and the gaps between; use smaller tiles or a larger scratchpad"
        )

    def _grow(self, stop: Stop) -> None:
        if stop is Stop.BLOCKS_FULL:
            self._blocks *= 2
        elif stop is Stop.TIMELINE_FULL:
            self._pool *= 2
        else:
            self._room *= 2

    def _machine_for(self, cores: Ints) -> MachineArrays:
        """Return the machine's tables with every pair of memories that this run may use."""
        wanted = set(self._pairs_for(cores))
        if self._machine is None or not wanted <= self._pairs:
            self._pairs |= wanted
            self._machine = machine_arrays(self._problem.machine, self._routes, self._pairs)
            self._refuse_deep_hierarchies(self._machine)
        return self._machine

    def _pairs_for(self, cores: Ints) -> Iterator[tuple[MemoryIdx, MemoryIdx]]:
        memories = self._problem.machine.memories
        if len(memories) <= MOST_MEMORIES_WITH_ALL_PAIRS or (cores == NONE).any():
            yield from ((a.index, b.index) for a in memories for b in memories if a is not b)
            return
        for memory in memories:
            parent = next_towards_dram(self._problem.machine, self._routes, memory.index)
            if parent != NONE:
                yield memory.index, parent
                yield parent, memory.index
        yield from self._pairs_between_readers(cores)

    def _pairs_between_readers(self, cores: Ints) -> Iterator[tuple[MemoryIdx, MemoryIdx]]:
        """Yield, for each slice, the way from its writer to each reader, and between readers."""
        memory_of = np.array([core.memory for core in self._problem.machine.cores])
        writers = self._problem.writers()
        flat = self._flat
        for slice_ in self._problem.slices:
            readers = flat.readers[
                flat.readers_from[slice_.index] : flat.readers_from[slice_.index + 1]
            ]
            places = list(dict.fromkeys(memory_of[cores[readers]].tolist()))
            writer = writers[slice_.buffer]
            if writer is not None:
                places.insert(0, int(memory_of[cores[writer]]))
            yield from ((places[0], other) for other in places[1:])
            yield from pairwise(places)

    def _refuse_deep_hierarchies(self, machine: MachineArrays) -> None:
        parents, is_dram = machine.memories["parent"], machine.memories["is_dram"]
        for core in self._problem.machine.cores:
            above = parents[core.memory]
            if above == NONE or is_dram[above]:
                continue
            further = parents[above]
            if further == NONE or not is_dram[further]:
                name = self._problem.machine.memories[core.memory].name
                raise SpmilpError(
                    f"memory {name}: more than one memory lies between it and DRAM; the list "
                    "scheduler stages through one at most"
                )
