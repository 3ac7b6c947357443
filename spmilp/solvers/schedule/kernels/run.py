"""Runs of the compiled scheduler, with tables that grow until they are large enough.

And what kept it from a plan, as data and in words.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from threading import Timer

import numpy as np

from spmilp.errors import DoesNotFitError, Shortage, SpmilpError
from spmilp.machine.controllers import CONTROLLERS, defects_of
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem, Slice, Task
from spmilp.problem.strides import layout_at_place, layout_in_slice, packed_layout, strided_copy
from spmilp.processes import interruptibly
from spmilp.solvers.common.fit import least_bytes, parts_of
from spmilp.solvers.schedule.kernels.addresses import are_packed, machines_for_spills, packed
from spmilp.solvers.schedule.kernels.extract import columns_of
from spmilp.solvers.schedule.kernels.generate import generate_schedule
from spmilp.solvers.schedule.kernels.memories import new_address_space
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns, lists_in
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, Ints, owners_of, table
from spmilp.solvers.schedule.kernels.schedule_state import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    COUNT_LATEST,
    FREE,
    ScheduleState,
    Stop,
    TableRows,
    Weights,
)
from spmilp.solvers.schedule.kernels.tables import (
    MOST_MEMORIES_WITH_ALL_PAIRS,
    MachineTables,
    ProblemTables,
    machine_tables,
    next_towards_dram,
    problem_tables,
    shared_memory_beside,
    tables_with_all_pairs,
)
from spmilp.solvers.schedule.kernels.timeline import new_timeline
from spmilp.units import MemoryIdx, align_up

RESIDENCY = (
    *("slice", "memory", "offset", "bytes", "start", "valid", "end"),
    *("filled_by_task", "filled_by_transfer", "overwrites", "alive", "following", "pinned"),
)
TRANSFER = ("slice", "source", "destination", "engine", "start", "sent", "end")
PRICE = np.dtype(
    [
        (field, np.float64 if field == "cost" else np.int64)
        for field in ("free_from", "cost", "store", "in_turn", "is_chosen")
    ]
)
FULL = {Stop.RESIDENCIES_FULL, Stop.TRANSFERS_FULL, Stop.TIMELINE_FULL, Stop.BLOCKS_FULL}

BLOCKS = 1024
"""Of each memory at the beginning: what lies there at one time, and what is free."""

TASKS_AHEAD = 4
"""Of each core, on average: how far ahead readers of a slice get it by the transfer to another."""

MANY_TASKS = 1_000
"""A run with fewer takes so little time that an interrupt can wait for its end."""


@contextmanager
def _given_up_after(seconds: float | None, state: ScheduleState) -> Iterator[None]:
    """Make a run end with ``TOO_LATE`` after some seconds.

    Compiled code does not hold the interpreter lock, and compares ``counts[COUNT_LATEST]`` with the
    end of each task that it places. So a timer's thread writes a makespan there that every task
    exceeds; the number is written at once, and it does not matter which task comes next.
    """
    if seconds is None:
        yield
        return
    timer = Timer(seconds, state.counts.__setitem__, (COUNT_LATEST, NONE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Runner:
    """Runs the scheduler on one problem as often as asked, by any number of threads.

    With ``multicasts`` transfers may fill several memories, where engines can and the makespan
    counts; they do (``can_multicast``), unless a run is told otherwise. Tables are ``growth`` times
    as large as at first: it doubles where they were too small. ``run`` raises a ``SpmilpError`` if
    more than one memory lies between a core's memory and DRAM.
    """

    def __init__(self, problem: Problem, *, multicasts: bool = True) -> None:
        self.problem = problem
        self._tables: ProblemTables = problem_tables(problem)
        # A buffer that is pinned to a shared memory may not lie in another one.
        shared = {one.index for one in problem.machine.memories if one.kind is MemoryKind.SHARED}
        self._keeps_off_shared = any(shared & {*pin.memories} for pin in problem.pins.buffers)
        self._machine: MachineTables | None = None
        self._pairs: set[tuple[MemoryIdx, MemoryIdx]] = set()
        able = any(engine.multicast for engine in problem.machine.engines)
        by_makespan = problem.objective.first is Quantity.MAKESPAN
        self.can_multicast = multicasts and able and by_makespan
        # Rows that are never used cost nothing: the system gives zeros when they are touched.
        self._rows = 8 * (len(problem.slices) + self._tables.reads.size) + 256
        self.growth = 1.0

    def run(
        self,
        order: Ints,
        cores: Ints,
        weights: Weights,
        latest: int = NEVER,
        *,
        multicasts: bool = True,
        seconds: float | None = None,
        is_open: bool = False,
        share: float = 1.0,
    ) -> tuple[Stop, ScheduleState]:
        """Schedule the tasks; return why the scheduler stopped, and its tables.

        ``order`` has every task once, each after all that it follows; ``cores`` the core of each
        task, or -1 to let the scheduler choose. It stops with ``TOO_LATE`` when the makespan is
        sure to exceed ``latest``, or after so many ``seconds``; ``None`` for no limit. With
        ``multicasts`` transfers may fill several memories, where ``can_multicast``. If it
        ``is_open``, addresses stay open: all bytes fit at all times then, into a ``share`` of each
        scratchpad, and offsets are yet to be found. Only where they :func:`can_be_open`.
        """
        room, beside_tensors = machines_for_spills(self.problem)
        while True:
            state = self._new_state(
                order,
                cores,
                weights,
                latest,
                room,
                multicasts=multicasts,
                is_open=is_open,
                share=share,
            )
            with _given_up_after(seconds, state):
                if len(self.problem.tasks) < MANY_TASKS:
                    stop = Stop(generate_schedule(state, order))
                else:
                    stop = Stop(interruptibly(generate_schedule, state, order))
            is_counted = room is beside_tensors
            if stop in FULL:
                self.growth *= 2
            elif stop is Stop.DONE and not (is_counted or are_packed(self.problem, state)):
                room = beside_tensors
            else:
                return stop, state

    def with_addresses(
        self, order: Ints, columns: PlanColumns, weights: Weights, *, multicasts: bool = True
    ) -> PlanColumns:
        """Return what a run with open addresses has decided, with addresses outside DRAM.

        All bytes fit at all times, and nearly always they can be packed. Where no addresses are
        found, tasks are scheduled anew in the same order on the same cores, with addresses. Raises
        a ``DoesNotFitError`` if there is no room for some task then.
        """
        found = packed(self.problem, columns)
        if found is not None:
            return found
        stop, state = self.run(order, columns.core, weights, multicasts=multicasts)
        if stop is not Stop.DONE:
            raise DoesNotFitError(
                why_it_stopped(self.problem, stop, state),
                shortage_of(self.problem, stop, state),
                is_proven=False,
            )
        return columns_of(self.problem, state)

    def _new_state(
        self,
        order: Ints,
        cores: Ints,
        weights: Weights,
        latest: int,
        room: Machine,
        *,
        multicasts: bool,
        is_open: bool,
        share: float,
    ) -> ScheduleState:
        machine = self._machine_for(cores)
        given, resources = self._tables, machine.resources.size
        rows, blocks = 1 + int(self._rows * self.growth), 1 + int(BLOCKS * self.growth)
        tasks = given.tasks.copy()
        tasks["position"][order] = np.arange(order.size)
        tasks["core"] = cores
        # The readers of each slice come in the order in which they are placed.
        readers, position = given.readers, tasks["position"]
        memories = machine.memories.copy()
        if self._keeps_off_shared:
            memories["aside"] = NONE
        return ScheduleState(
            tasks=tasks,
            cycles=given.cycles.ravel(),
            reads=given.reads.copy(),
            writes=given.writes.copy(),
            slices=given.slices.copy(),
            readers=readers.items[np.lexsort((position[readers.items], owners_of(readers)))],
            buffers=given.buffers.copy(),
            lists=given.lists,
            cores=machine.cores.copy(),
            memories=memories,
            pair_at=machine.pair_at.ravel(),
            pairs=machine.pairs,
            options=machine.options,
            links=machine.links,
            resources=machine.resources,
            residencies=table(rows, *RESIDENCY),
            transfers=table(rows, *TRANSFER),
            prices=np.zeros(blocks, PRICE).view(np.recarray),
            counts=np.array([0, 0, NONE, NONE, NONE, latest], np.int64),
            space=new_address_space(room, blocks, is_open=is_open, share=share),
            timeline=new_timeline(resources, int(1024 * resources * self.growth) + 16 * rows),
            scale=machine.scale,
            reach=TASKS_AHEAD * len(machine.cores) if multicasts and self.can_multicast else 0,
            cast_links=np.zeros(resources, np.int64),
            is_open=is_open,
            chosen=np.zeros(blocks, np.int64),
            weights=weights,
            rows=TableRows(
                buffers=len(given.buffers),
                cores=len(machine.cores),
                kinds=given.cycles.shape[1],
                memories=len(machine.memories),
                residencies=rows,
                transfers=rows,
            ),
        )

    def _machine_for(self, cores: Ints) -> MachineTables:
        """Return the machine's tables with every pair of memories that this run may use."""
        memories = self.problem.machine.memories
        if len(memories) <= MOST_MEMORIES_WITH_ALL_PAIRS or (cores == NONE).any():
            return self._usable(tables_with_all_pairs(self.problem.machine))
        wanted = set(self._pairs_for(cores))
        machine = self._machine
        if machine is None or not wanted <= self._pairs:
            pairs = self._pairs | wanted
            machine = self._usable(machine_tables(self.problem.machine, pairs))
            # In this order: another thread that sees the new pairs sees the new tables, too.
            self._machine, self._pairs = machine, pairs
        return machine

    def _pairs_for(self, cores: Ints) -> Iterator[tuple[MemoryIdx, MemoryIdx]]:
        for memory in self.problem.machine.memories:
            for towards in (next_towards_dram, shared_memory_beside):
                other = towards(self.problem.machine, memory.index)
                if other != NONE:
                    yield memory.index, other
                    yield other, memory.index
        yield from self._pairs_between_readers(cores)

    def _pairs_between_readers(self, cores: Ints) -> Iterator[tuple[MemoryIdx, MemoryIdx]]:
        """Yield the pairs from the writer of each slice to its readers, and between these.

        Each memory counts once for each slice, in the order of use, the writer's first.
        """
        memories = [core.memory for core in self.problem.machine.cores]
        memory_of = [memories[core] for core in cores.tolist()]
        readers, writers = lists_in(self._tables.readers), self.problem.writers()
        for slice_, users in zip(self.problem.slices, readers, strict=True):
            writer = writers[slice_.buffer]
            tasks = users if writer is None else (writer, *users)
            places = list(dict.fromkeys(memory_of[task] for task in tasks))
            yield from ((places[0], other) for other in places[1:])
            yield from pairwise(places)

    def _usable(self, machine: MachineTables) -> MachineTables:
        """Return the tables of a machine whose scratchpads are near enough to DRAM."""
        parents, is_dram = machine.memories["parent"], machine.memories["is_dram"]
        for core in self.problem.machine.cores:
            above = parents[core.memory]
            if above == NONE or is_dram[above]:
                continue
            further = parents[above]
            if further == NONE or not is_dram[further]:
                name = self.problem.machine.memories[core.memory].name
                raise SpmilpError(
                    f"memory {name}: more than one memory lies between it and DRAM; the list "
                    "scheduler stages through one at most"
                )
        return machine


MOST_NAMED = 4


def shortage_of(problem: Problem, stop: Stop, state: ScheduleState) -> Shortage | None:
    """Return for which task there was no room, and beside what; ``None`` for other causes.

    The buffers that must stay are those that are to end in the memory and are there already. What
    is needed may be less than what is usable: then it does not go into the gaps that they leave.
    """
    if stop is not Stop.DOES_NOT_FIT:
        return None
    number = int(state.counts[COUNT_FAILED_TASK])
    if number == NONE:
        memory = problem.machine.memories[int(state.counts[COUNT_FAILED_MEMORY])]
        there = [b for b in problem.buffers if b.starts_in == memory.index]
        return Shortage(
            what="cycle 0",
            memory=memory.name,
            needed=sum(align_up(buffer.bytes, memory.alignment) for buffer in there),
            usable=memory.usable or 0,
            parts=tuple((buffer.name, buffer.bytes) for buffer in there),
        )
    task, core = problem.tasks[number], int(state.tasks[number].core)
    memory = problem.machine.memories[problem.machine.cores[core].memory]
    stuck = _left_in(problem, state, task, memory.index)
    if stuck is not None:
        return stuck
    staying = [
        buffer
        for buffer in problem.buffers
        if buffer.ends_in == memory.index
        and state.buffers[buffer.index].home != NONE
        and buffer.index not in task.writes
    ]
    # The task could run once its core and what it follows are done.
    done = state.tasks["placed"].astype(bool) & (state.tasks["core"] == core)
    parts = (*parts_of(problem, task), *((f"{b.name}, which must stay", b.bytes) for b in staying))
    return Shortage(
        what=f"task {task.name}, cycle {state.tasks['end'][done].max(initial=0):,}",
        memory=memory.name,
        needed=least_bytes(problem, task, memory.alignment)
        + sum(align_up(buffer.bytes, memory.alignment) for buffer in staying),
        usable=memory.usable or 0,
        parts=parts,
        task=task.name,
    )


def _left_in(
    problem: Problem, state: ScheduleState, task: Task, memory: MemoryIdx
) -> Shortage | None:
    """Return the smallest buffer in a memory for which a DRAM with a limit has no gap, if any."""
    parents, space = state.memories["parent"], state.space
    above = int(parents[memory])
    dram = problem.machine.memories[above if state.memories[above].is_dram else parents[above]]
    first, length = dram.index * space.most, int(space.length[dram.index])
    if dram.usable is None or length == 0:
        return None
    blocks = space.blocks[first : first + length + 1]
    gap = int(np.diff(blocks["start"])[blocks["holder"][:-1] == FREE].max(initial=0))
    held = (
        buffer
        for buffer, row in zip(problem.buffers, state.buffers, strict=True)
        if row.home != NONE and row.in_dram == NONE and row.ends != memory and buffer.bytes > gap
        if state.residencies[row.home].memory == memory
    )
    least = min(held, key=lambda buffer: buffer.bytes, default=None)
    if least is None:
        return None
    return Shortage(
        what="what is spilled",
        memory=dram.name,
        needed=dram.usable - gap + least.bytes,
        usable=dram.usable,
        parts=((least.name, least.bytes),),
        task=task.name,
    )


def why_it_stopped(problem: Problem, stop: Stop, state: ScheduleState) -> str:
    """Return what kept the scheduler from a plan, in words."""
    short = shortage_of(problem, stop, state)
    if short is not None:
        largest = sorted(short.parts, key=lambda part: (-part[1], part[0]))[:MOST_NAMED]
        named = ", ".join(f"{name} {size} B" for name, size in largest)
        over = short.needed - short.usable
        how = (
            f"> {short.usable} B usable, {over} B over"
            if over > 0
            else (f"of {short.usable} B usable, but not between the gaps that are left")
        )
        return (
            f"{short.what}: {short.needed} B must be in {short.memory} at one time {how} "
            f"(largest: {named}); use smaller tiles or a larger {short.memory}"
        )
    task = int(state.counts[COUNT_FAILED_TASK])
    where = f"task {problem.tasks[task].name}" if task != NONE else "what is there at cycle 0"
    slice_ = problem.slices[int(state.counts[COUNT_FAILED_SLICE])]
    memory = problem.machine.memories[int(state.counts[COUNT_FAILED_MEMORY])]
    return (
        f"{where}: no engine can bring {problem.buffers[slice_.buffer].name} "
        f"({slice_.bytes} B) to {memory.name} in one transfer from where it lies; check "
        f"the engines' reach, their longest transfer and their dimensions{_defect(problem, slice_)}"
    )


def _defect(problem: Problem, part: Slice) -> str:
    """Return what keeps controllers from copying a slice out of where it may lie, if anything."""
    buffer = problem.buffers[part.buffer]
    there = [packed_layout(problem, part.index), layout_in_slice(problem, part.index, part.buffer)]
    if buffer.place is not None:
        there.append(layout_at_place(problem, part.index))
    for layout in reversed(there):
        copy = strided_copy(part.extent, buffer.item, layout, there[0])
        for name in dict.fromkeys(engine.controller for engine in problem.machine.engines):
            found = None if name is None else next(defects_of(copy, CONTROLLERS[name]), None)
            if found is not None:
                return f"; {found}: make the sizes of the model multiples of it"
    return ""
