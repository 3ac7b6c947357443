"""From an order and a core for each task to a complete schedule. Compiled.

The contents of each scratchpad are known at every step, so eviction can look ahead: what is needed
last goes first (Belady, IBM Systems Journal 5(2), 1966), weighed against how soon its bytes are
free and how long it takes to bring back. A buffer that DRAM has no copy of is stored before its
bytes are given away; the store may run as soon as the buffer is valid, long before.
"""

from numba import njit

from spmilp.solvers.list_scheduler.fetch import fetch, send_towards
from spmilp.solvers.list_scheduler.lifetimes import (
    NEVER,
    close,
    close_idle_copies,
    close_if_idle,
    new_residency,
    next_use,
    residency_in,
    settle_at,
)
from spmilp.solvers.list_scheduler.records import NONE, Ints
from spmilp.solvers.list_scheduler.room import (
    BLOCKS_FULL,
    DOES_NOT_FIT,
    best_window,
    evict,
    make_room,
)
from spmilp.solvers.list_scheduler.state import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    Board,
)
from spmilp.solvers.list_scheduler.transfers import (
    DONE,
    RESIDENCIES_FULL,
    cycles_on_idle_hardware,
)


@njit(cache=True)
def decode(board: Board, order: Ints) -> int:
    """Place every task in ``order``; return why it stopped."""
    stop = _place_what_is_there_at_the_start(board)
    if stop != DONE:
        return stop
    for task in order:
        if board.state.tasks[task].core == NONE:
            board.state.tasks[task].core = _core_that_ends_first(board, task)
        stop = _place(board, task, False)
        if stop == DOES_NOT_FIT:
            # What the task has brought so far lies badly: begin again in an empty memory.
            stop = _empty_the_memory(board, task)
            if stop == DONE:
                stop = _place(board, task, True)
        if stop != DONE:
            board.state.counts[COUNT_FAILED_TASK] = task
            return stop
    return DONE


@njit(cache=True)
def _place_what_is_there_at_the_start(board: Board) -> int:
    for buffer in range(board.problem.buffers.size):
        memory = board.problem.buffers[buffer].begins
        if memory == NONE:
            continue
        size = board.problem.slices[buffer].bytes
        new = new_residency(board, buffer, memory, size)
        if new == NONE:
            return RESIDENCIES_FULL
        if board.machine.memories[memory].is_dram:
            board.state.buffers[buffer].in_dram = new
            continue
        address = best_window(board, memory, size, 0, 0, 0, 0, True)
        if address == NONE:
            board.state.counts[COUNT_FAILED_SLICE] = buffer
            board.state.counts[COUNT_FAILED_MEMORY] = memory
            return DOES_NOT_FIT
        if not settle_at(board, new, address):
            return BLOCKS_FULL
        board.state.buffers[buffer].home = new
    return DONE


@njit(cache=True)
def _core_that_ends_first(board: Board, task: int) -> int:
    """Return the core on which a task would end first, with loads on idle hardware."""
    problem, machine, state = board.problem, board.machine, board.state
    ready = _end_of_predecessors(board, task)
    best, best_end = NONE, 0
    for core in range(machine.core_kind.size):
        cycles = problem.cycles[task, machine.core_kind[core]]
        if cycles == NONE:
            continue
        memory = machine.core_memory[core]
        start = max(ready, state.cores[core].free)
        loads = 0
        for entry in range(problem.reads_from[task], problem.reads_from[task + 1]):
            what = problem.reads[entry]
            if residency_in(board, what, memory) == NONE:
                parent = machine.memories[memory].parent
                size = problem.slices[what].bytes
                loads += cycles_on_idle_hardware(machine, parent, memory, size)
        end = max(start, ready + loads) + cycles
        if best == NONE or end < best_end:
            best, best_end = core, end
    return best


@njit(cache=True)
def _end_of_predecessors(board: Board, task: int) -> int:
    end = 0
    for entry in range(board.problem.before_from[task], board.problem.before_from[task + 1]):
        end = max(end, board.state.tasks[board.problem.before[entry]].end)
    return end


@njit(cache=True)
def _empty_the_memory(board: Board, task: int) -> int:
    """Evict all that may go from the memory in which a task is to run, what it reads included."""
    memory = board.machine.core_memory[board.state.tasks[task].core]
    block = 0
    while block < board.space.length[memory]:
        held = board.space.blocks[memory, block].holder
        if held < 0 or _must_stay(board, held):
            block += 1
            continue
        stop = evict(board, held, task)
        if stop != DONE:
            return stop
        block = 0
    return DONE


@njit(cache=True)
def _must_stay(board: Board, held: int) -> bool:
    residency = board.state.residencies[held]
    buffer = board.problem.slices[residency.slice].buffer
    at_home = board.state.buffers[buffer].home == held
    return at_home and board.problem.buffers[buffer].ends == residency.memory


@njit(cache=True)
def _place(board: Board, task: int, compact: bool) -> int:
    """Give a task its slices, bytes and cycles."""
    problem, state = board.problem, board.state
    core = state.tasks[task].core
    memory = board.machine.core_memory[core]
    need = max(state.cores[core].free, _end_of_predecessors(board, task))
    for entry in range(problem.reads_from[task], problem.reads_from[task + 1]):
        here = residency_in(board, problem.reads[entry], memory)
        state.serves[entry] = here
        if here != NONE:
            state.residencies[here].pinned = task
            need = max(need, state.residencies[here].valid)
    for entry in range(problem.reads_from[task], problem.reads_from[task + 1]):
        if state.serves[entry] == NONE:
            here, stop = fetch(board, problem.reads[entry], memory, need, task, compact)
            if stop != DONE:
                return stop
            state.serves[entry] = here
            need = max(need, state.residencies[here].valid)
    state.tasks[task].placed = 1
    start, stop = _reserve_what_it_writes(board, task, memory, need, compact)
    if stop != DONE:
        state.tasks[task].placed = 0
        return stop
    end = start + problem.cycles[task, board.machine.core_kind[core]]
    state.tasks[task].start = start
    state.tasks[task].end = end
    state.cores[core].free = end
    state.memories[memory].settled = max(state.memories[memory].settled, start)
    stop = _write(board, task, memory, start, end)
    if stop != DONE:
        return stop
    return _let_go(board, task)


@njit(cache=True)
def _reserve_what_it_writes(
    board: Board, task: int, memory: int, need: int, compact: bool
) -> tuple[int, int]:
    """Find bytes for outputs and scratch; return the task's start and why it stopped."""
    problem, state = board.problem, board.state
    for entry in range(problem.writes_from[task], problem.writes_from[task + 1]):
        old = _overwritten(board, task, entry, memory, need, compact)
        state.holds[entry] = old
        if old != NONE:
            need = max(need, state.residencies[old].end)
            continue
        buffer = problem.writes[entry]
        size = problem.slices[buffer].bytes
        new, free, stop = _reserve(board, buffer, size, memory, need, task, compact)
        if stop != DONE:
            return need, stop
        state.holds[entry] = new
        need = max(need, free)
    if problem.scratch[task] > 0:
        size = problem.scratch[task]
        new, free, stop = _reserve(board, NONE, size, memory, need, task, compact)
        if stop != DONE:
            return need, stop
        state.tasks[task].scratch = new
        need = max(need, free)
    return need, DONE


@njit(cache=True)
def _reserve(
    board: Board, what: int, size: int, memory: int, need: int, task: int, compact: bool
) -> tuple[int, int, int]:
    address = best_window(board, memory, size, need, 0, NEVER, task, compact)
    if address == NONE:
        return NONE, 0, DOES_NOT_FIT
    return make_room(board, what, size, memory, address, task)


@njit(cache=True)
def _overwritten(board: Board, task: int, entry: int, memory: int, need: int, compact: bool) -> int:
    """Return the operand whose bytes the task's output ``entry`` may take over; -1 if none.

    Nobody else needs the operand, it is large enough, and waiting for its other uses costs nothing
    (or there is no room to be choosy).
    """
    problem, state = board.problem, board.state
    size = problem.slices[problem.writes[entry]].bytes
    for pair in range(problem.overwrites_from[entry], problem.overwrites_from[entry + 1]):
        read = problem.reads_from[task] + problem.overwrites[pair]
        held = state.serves[read]
        residency = state.residencies[held]
        if residency.slice != problem.reads[read] or residency.memory != memory:
            continue
        if residency.bytes < size or (residency.end > need and not compact):
            continue
        if next_use(board, held) != NEVER:
            continue
        taken = False
        for other in range(problem.writes_from[task], entry):
            taken = taken or state.holds[other] == held
        if not taken:
            return held
    return NONE


@njit(cache=True)
def _write(board: Board, task: int, memory: int, start: int, end: int) -> int:
    """Fix the cycles of what a task uses; overwritten operands give up their bytes."""
    problem, state = board.problem, board.state
    for entry in range(problem.reads_from[task], problem.reads_from[task + 1]):
        served = state.residencies[state.serves[entry]]
        served.end = max(served.end, end)
    for entry in range(problem.writes_from[task], problem.writes_from[task + 1]):
        buffer = problem.writes[entry]
        if state.residencies[state.holds[entry]].slice != buffer:
            old = state.holds[entry]
            close(board, old)
            state.holds[entry] = new_residency(board, buffer, memory, problem.slices[buffer].bytes)
            if state.holds[entry] == NONE:
                return RESIDENCIES_FULL
            if not settle_at(board, state.holds[entry], state.residencies[old].offset):
                return BLOCKS_FULL
        written = state.residencies[state.holds[entry]]
        written.start = start
        written.valid = end
        written.end = end
        written.filled_by_task = task
        state.buffers[buffer].home = state.holds[entry]
    if state.tasks[task].scratch != NONE:
        scratch = state.residencies[state.tasks[task].scratch]
        scratch.start = start
        scratch.end = end
        close(board, state.tasks[task].scratch)
    return DONE


@njit(cache=True)
def _let_go(board: Board, task: int) -> int:
    """Store outputs, and close every residency that nobody needs any more."""
    problem, state = board.problem, board.state
    for entry in range(problem.writes_from[task], problem.writes_from[task + 1]):
        buffer = problem.writes[entry]
        ends = problem.buffers[buffer].ends
        if ends != NONE:
            stop = send_towards(board, state.buffers[buffer].home, ends, task)
            if stop != DONE:
                return stop
        close_if_idle(board, state.buffers[buffer].home)
    for entry in range(problem.reads_from[task], problem.reads_from[task + 1]):
        what = problem.reads[entry]
        buffer = problem.slices[what].buffer
        close_if_idle(board, state.serves[entry])
        close_if_idle(board, state.buffers[buffer].home)
        close_idle_copies(board, what)
    return DONE
