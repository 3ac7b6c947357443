"""Bounds from single resources: cores, links of DRAMs, bytes beside a running task, energy."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import ceil

from spmilp.bounds.movement import FAR, Distances, Movement, Passage
from spmilp.bounds.paths import Paths
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.problem.loads import Load, Share, bytes_read_of_buffers
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, KindIdx, MemoryIdx, align_up

MOST_KINDS_COMBINED = 6
"""Up to so many different sets of kinds, all of their unions are looked at."""


def work_bound(problem: Problem, paths: Paths) -> Cycles:
    """Return the best bound from the work of tasks that only some kinds of core can run.

    Let K be a set of kinds and Q the tasks that no other kind can run. The cores of K run all of
    Q, one task at a time each, none before the least head of Q, and after the last one ends at
    least the least tail of Q less its own cycles must pass. So

        makespan >= min head(Q) + ceil(sum cycles(Q) / cores(K)) + min (tail - cycles)(Q).

    Some core of K runs ``ceil(|Q| / cores(K))`` tasks at least, so the term in the middle is at
    least that many times the least cycles of Q. Fernandez and Bussell, "Bounds on the number of
    processors and time for multiprocessor optimal schedules", IEEE Trans. Computers C-22(8), 1973.
    Q is narrowed to the tasks with a head of at least each value in turn (the last layers), and to
    those with a tail of at least each value.
    """
    able, best = [kinds_able(task.cycles) for task in problem.tasks], 0
    after = [tail - own for tail, own in zip(paths.tail, paths.cycles, strict=True)]
    for kinds in unions(set(able)):
        tasks = [index for index, some in enumerate(able) if some <= kinds]
        cores = sum(core.kind in kinds for core in problem.machine.cores)
        for values in (paths.head, after):
            latest_first = sorted(tasks, key=values.__getitem__, reverse=True)
            best = max(best, _best_of_prefixes(latest_first, paths, after, cores))
    return best


def kinds_able(cycles: tuple[Cycles | None, ...]) -> frozenset[KindIdx]:
    return frozenset(kind for kind, some in enumerate(cycles) if some is not None)


def unions(sets: set[frozenset[KindIdx]]) -> list[frozenset[KindIdx]]:
    """Return the unions of the sets; of many different sets only each one and the union of all."""
    ordered = sorted(sets, key=sorted)
    if len(ordered) > MOST_KINDS_COMBINED:
        return [*ordered, frozenset().union(*ordered)]
    found = {
        frozenset().union(*some)
        for count in range(1, len(ordered) + 1)
        for some in combinations(ordered, count)
    }
    return sorted(found, key=sorted)


def _best_of_prefixes(tasks: list[int], paths: Paths, after: list[Cycles], cores: int) -> Cycles:
    """Return the best bound among the sets of the first one, two, three ... tasks."""
    best = total = 0
    least_head = least_after = least_cycles = FAR
    for count, task in enumerate(tasks, start=1):
        total += paths.cycles[task]
        least_cycles = min(least_cycles, paths.cycles[task])
        least_head = min(least_head, paths.head[task])
        least_after = min(least_after, after[task])
        needed = max(-(-total // cores), -(-count // cores) * least_cycles)
        best = max(best, least_head + needed + least_after)
    return best


def least_reads(problem: Problem, task: Task) -> dict[BufferIdx, Bytes]:
    """Return the least bytes, by buffer, that lie in the memory of a task's core for it to read.

    Of each buffer its slices lie side by side, or the whole buffer, which serves them all. Where
    cores read in other memories, nothing has to lie there.
    """
    sizes: dict[BufferIdx, Bytes] = {}
    for read in set(task.reads) if problem.machine.remote is None else ():
        slice_ = problem.slices[read]
        sizes[slice_.buffer] = sizes.get(slice_.buffer, 0) + slice_.bytes
    return {one: min(size, problem.buffers[one].bytes) for one, size in sorted(sizes.items())}


def pieces_beside(problem: Problem, task: Task) -> list[Bytes]:
    """Return the sizes of what lies side by side while a task runs alone in its memory.

    That is what it reads (:func:`least_reads`), what it writes, save for what may be written over
    an operand, and its scratch.
    """
    read, written = least_reads(problem, task), [task.scratch]
    for result in task.writes:
        size = problem.buffers[result].bytes
        operands = [problem.slices[one] for one, over in task.in_place if over == result]
        if operands and problem.machine.remote is None:
            # It begins where the operand does, and lies behind it with what it has more.
            operand = max(operands, key=lambda one: one.bytes)
            read[operand.buffer] += max(0, size - operand.bytes)
        else:
            written.append(size)
    return [size for size in (*read.values(), *written) if size > 0]


def peak_bound(problem: Problem) -> Bytes:
    """Return the bytes below which no plan keeps the peak of the scratchpads.

    While a task runs, its working set (:func:`.pieces_beside`) lies in its core's memory, each part
    at an aligned address, outside the reserved ranges. Of the parts, all but the highest one take
    whole multiples of the alignment. Where a core works in a memory that is no scratchpad, its
    tasks have no peak.
    """
    machine = problem.machine
    known: dict[tuple[bool, ...], list[Memory]] = {}
    best = 0
    for task in problem.tasks:
        able = tuple(cycles is not None for cycles in task.cycles)
        if able not in known:
            memories = [machine.memories[core.memory] for core in machine.cores if able[core.kind]]
            # One of each sort is enough.
            alike = {(m.kind, m.alignment, m.reserved): m for m in memories}
            known[able] = [*alike.values()]
        pieces = pieces_beside(problem, task)
        best = max(best, min((lowest_end(one, pieces) for one in known[able]), default=0))
    return best


def lowest_end(memory: Memory, pieces: Sequence[Bytes]) -> Bytes:
    """Return the least peak of a memory that holds some pieces side by side."""
    if memory.kind is not MemoryKind.SPM or not pieces:
        return 0
    edges = [edge for taken in memory.reserved for edge in (taken.start, taken.end)]
    # Reserved bytes could fill what alignment leaves free, unless they are aligned themselves.
    step = memory.alignment if all(edge % memory.alignment == 0 for edge in edges) else 1
    padded = [align_up(size, step) for size in pieces]
    wanted = sum(padded) - max(p - size for p, size in zip(padded, pieces, strict=True))
    end = 0
    for taken in memory.reserved:
        free = taken.start - end
        if wanted <= free:
            return end + wanted
        wanted -= free
        end = taken.end
    return end + wanted


def bytes_on_chip(machine: Machine) -> Bytes | None:
    """Return the bytes of all memories but the DRAMs in which no core works."""
    worked_in = {core.memory for core in machine.cores}
    total = 0
    for memory in machine.memories:
        if memory.kind is MemoryKind.DRAM and memory.index not in worked_in:
            continue
        if memory.usable is None:
            return None
        total += memory.usable
    return total


def traffic_bound(problem: Problem, movement: Movement, paths: Paths) -> Cycles:
    """Return the best bound from loads and stores that no plan can avoid.

    What :func:`~spmilp.problem.loads.least_loads` says leaves a DRAM by transfers, each of which
    holds its rate on a link out of the DRAM while it sends (:attr:`.Movement.loads`). What tasks
    with tails of at least q read must have arrived q cycles before the end, so for each q, with
    :class:`.Passage`,

        makespan >= ceil(sum of uses / rate of a cut that all transfers out cross)
                    + least set-up + least latency + q.

    Both presume that no core works in that DRAM itself. Stores likewise, after the head and the
    cycles of the task that writes them (Jackson's one machine bound, Carlier, EJOR 11, 1982). Loads
    and stores together cross a cut of both (a port that serves one direction at a time), where all
    their uses add up. All transfers cross the channels of their engines, too; each one holds a
    channel from its start until it has sent all, or until it has arrived.
    """
    bounds = [0]
    for (dram, gates), number in product(movement.gates.items(), range(2)):
        loads = [
            (uses[number], _tail(load, paths))
            for load, uses in movement.loads
            if load.buffer.starts_in == dram
        ]
        stores = [
            (store.uses[number], paths.head[store.task.index] + paths.cycles[store.task.index])
            for store in movement.stores
            if store.buffer.ends_in == dram
        ]
        total = [(sum((use for use, _ in loads + stores), Fraction(0)), 0)]
        for jobs, gate in zip((loads, stores, total), gates, strict=True):
            bounds.append(_one_machine(jobs, gate.passages[number]))
    return max(bounds)


def _tail(load: Load, paths: Paths) -> Cycles:
    """Return the longest tail of the readers of a load if all of it is for each reader.

    Where the parts may come one by one, in any order, the shortest tail is safe.
    """
    tails = [paths.tail[task] for task in load.readers]
    return min(tails) if load.share is Share.REST else max(tails)


def _one_machine(jobs: Iterable[tuple[Fraction, Cycles]], passage: Passage) -> Cycles:
    """Return the best bound over the jobs whose head (or tail) is at least that of each job."""
    best = 0
    total = Fraction(0)
    if passage.rate == 0:
        return best
    for use, rest in sorted(jobs, key=lambda job: -job[1]):
        total += use
        if total > 0:
            best = max(best, ceil(total / passage.rate) + passage.apart + rest)
    return best


def energy_bound(problem: Problem) -> Femtojoules:
    """Return the energy that no plan can do without.

    A task takes at least what its most frugal kind takes, of those that can run it and have cores;
    what is not stated counts nothing. Each byte that is read of a buffer which lies in DRAM at
    first comes from there to some reader's memory; a buffer that must end in DRAM gets there from
    its writer's; and what a task reads of another one's result gets from a memory of the one to a
    memory of the other. A byte takes at least the energy of its cheapest chain of transfers.
    Different buffers move by different transfers, so their energies add up; of one buffer the
    largest demand counts.
    """
    present = {core.kind for core in problem.machine.cores}
    total = 0
    for task in problem.tasks:
        able = [kind for kind in present if task.cycles[kind] is not None]
        if task.energy and able:
            total += min(task.energy[kind] or 0 for kind in able)
    return total + _movement(problem)


def _movement(problem: Problem) -> Femtojoules:
    distances = Distances(problem)
    writers = problem.writers()
    # Most tasks read from the same memories: sets of them are collected, not memories.
    readable: dict[BufferIdx, set[frozenset[MemoryIdx]]] = {}
    least: dict[BufferIdx, Femtojoules] = {}
    for task in problem.tasks:
        for read in task.reads:
            slice_ = problem.slices[read]
            readable.setdefault(slice_.buffer, set()).add(distances.readable(task))
            writer = writers[slice_.buffer]
            if writer is not None:
                sources = distances.writable(problem.tasks[writer])
                moved = distances.energy(sources, distances.readable(task), slice_.bytes)
                least[slice_.buffer] = max(moved, least.get(slice_.buffer, 0))
    for buffer, size in zip(problem.buffers, bytes_read_of_buffers(problem), strict=True):
        start, end, writer = buffer.starts_in, buffer.ends_in, writers[buffer.index]
        if start is not None and size > 0:
            targets = frozenset[MemoryIdx]().union(*readable[buffer.index])
            least[buffer.index] = distances.energy(frozenset((start,)), targets, size)
        if writer is not None and end is not None:
            stored = distances.energy(
                distances.writable(problem.tasks[writer]), frozenset((end,)), buffer.bytes
            )
            least[buffer.index] = max(stored, least.get(buffer.index, 0))
    return sum(least.values())
