"""The core on which a task would end first, when none has been chosen for it. Compiled."""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NONE, ONE, ZERO
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.solvers.kernels.serial.transfers import cycles_on_idle_hardware


@part
def earliest_finish_core(state: ScheduleState, task: int) -> int:
    """Return the core on which a task would end first, with loads on idle hardware.

    What each memory holds is counted once for all cores: the time for one more core does not depend
    on how much the task reads.
    """
    _count_loads_saved(state, task)
    reads = state.tasks[task].reads_to - state.tasks[task].reads_from
    ready = end_of_predecessors(state, task)
    best, best_end = NONE, ZERO
    rate, moving = ZERO, ZERO
    for core in range(state.cores.size):
        there = state.cores[core]
        cycles = state.cycles[task, there.kind]
        if cycles == NONE:
            continue
        memory = state.memories[there.memory]
        loads = ZERO
        pair = state.pair_at[memory.parent, there.memory]
        if pair != NONE:
            option = state.options[state.pairs[pair].options_from]
            if option.rate != rate:
                rate = option.rate
                moving = _cycles_of_all_reads(state, task, rate)
            loads = reads * option.fixed + moving - memory.loads_saved
        end = max(max(ready, there.free), ready + loads) + cycles
        if best == NONE or end < best_end:
            best, best_end = core, end
    return best


@part
def end_of_predecessors(state: ScheduleState, task: int) -> int:
    """Return the cycle from which a task could start for what it follows."""
    end = ZERO
    follower = state.tasks[task]
    for entry in range(follower.before_from, follower.before_to):
        end = max(end, state.tasks[state.lists[entry]].end)
    return end


@part
def _count_loads_saved(state: ScheduleState, task: int) -> None:
    """Add up, for each memory, the cycles of loads that its contents spare a task."""
    for memory in range(state.memories.size):
        state.memories[memory].loads_saved = ZERO
    for entry in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
        slice_ = state.reads[entry].slice
        _count_copies(state, slice_, state.slices[slice_].bytes, entry + ONE)
        buffer = state.slices[slice_].buffer
        if buffer != slice_:
            _count_copies(state, buffer, state.slices[slice_].bytes, entry + ONE)


@part
def _count_copies(state: ScheduleState, held: int, size: int, now: int) -> None:
    """Count a load of ``size`` bytes for each memory that holds a slice and was not counted now."""
    one = state.slices[held].first
    while one != NONE:
        residency = state.residencies[one]
        memory = state.memories[residency.memory]
        if residency.alive and memory.counted_for != now:
            memory.counted_for = now
            memory.loads_saved += cycles_on_idle_hardware(
                state, memory.parent, residency.memory, size
            )
        one = residency.following


@part
def _cycles_of_all_reads(state: ScheduleState, task: int, rate: int) -> int:
    """Return the cycles in which all that a task reads passes at a scaled rate."""
    cycles = ZERO
    for entry in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
        size = state.slices[state.reads[entry].slice].bytes
        cycles += (size * state.scale + rate - ONE) // rate
    return cycles
