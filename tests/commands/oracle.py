"""All that must be ordered, found by looking at every pair of accesses and every byte."""

from itertools import combinations, product

from spmilp.commands.commands import CommandLists, Move, Run, Signal, Wait
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

Name = tuple[str, int]
Bytes = set[tuple[int, int]]


def conflicting_pairs(problem: Problem, plan: Plan) -> list[tuple[Name, Name, bool]]:
    """Return each two tasks and transfers that conflict or follow each other, in plan order.

    With them comes whether the first only reads what the second writes.
    """
    times = {("run", each.task): (each.start, each.end, each.end) for each in plan.placements}
    times |= {("move", each.index): (each.start, each.sent, each.end) for each in plan.transfers}
    touched = {name: _touched(problem, plan, name) for name in times}
    pairs = [(("run", e), ("run", t.index), False) for t in problem.tasks for e in t.after]
    for two in combinations(times, 2):
        first, second = sorted(two, key=lambda name: times[name])
        (reads, writes), (later_reads, later_writes) = touched[first], touched[second]
        only_reads = not writes & (later_reads | later_writes)
        if not only_reads or reads & later_writes:
            assert times[first][1 if only_reads else 2] <= times[second][0]
            pairs.append((first, second, only_reads))
    return pairs


def _touched(problem: Problem, plan: Plan, name: Name) -> tuple[Bytes, Bytes]:
    kind, index = name
    if kind == "move":
        move = plan.transfers[index]
        reads = [(move.slice, move.source)]
        writes = [(move.slice, target) for target in move.destinations]
    else:
        task, placement = problem.tasks[index], plan.placements[index]
        reads = list(zip(task.reads, placement.reads, strict=True))
        writes = list(zip(task.writes, placement.writes, strict=True))
    read = {byte for pair in reads for byte in _bytes_of(problem, plan, *pair)}
    written = {byte for pair in writes for byte in _bytes_of(problem, plan, *pair)}
    if kind == "run" and plan.placements[index].scratch is not None:
        stay = plan.residencies[plan.placements[index].scratch]
        written |= {(stay.memory, stay.offset + n) for n in range(stay.bytes)}
    return read, written


def _bytes_of(problem: Problem, plan: Plan, slice_: int, residency: int) -> Bytes:
    part = problem.slices[slice_]
    item, stay = problem.buffers[part.buffer].item, plan.residencies[residency]
    layout = layout_in_memory(problem, plan, slice_, residency)
    found = set()
    for element in product(*map(range, part.extent)):
        first = layout.offset + sum(n * s for n, s in zip(element, layout.strides, strict=True))
        found |= {(stay.memory, first + n) for n in range(item)}
    place = problem.buffers[part.buffer].place
    if place is not None and problem.tensors[place.tensor].memory == stay.memory:
        return found
    # Outside tensors a slice counts with the gaps between its rows.
    addresses = [address for _, address in found]
    return {(stay.memory, address) for address in range(min(addresses), max(addresses) + 1)}


def waits_of(lists: CommandLists) -> tuple[list[list[Name]], list[tuple[Name, Name]]]:
    """Return what each list runs, and who waits for whom; the lists use counters."""
    sequences: list[list[Name]] = []
    signals: dict[int, list[Name]] = {}
    for one in lists.lists:
        sequences.append([])
        for command in one.commands:
            match command:
                case Run(index) | Move(index):
                    sequences[-1].append((type(command).__name__.lower(), index))
                case Signal(event):
                    signals.setdefault(event, []).append(sequences[-1][-1])
    waits = []
    for one in lists.lists:
        pending: list[Name] = []
        for command in one.commands:
            match command:
                case Wait(event, count):
                    pending.append(signals[event][count - 1])
                case Run(index) | Move(index):
                    name = type(command).__name__.lower(), index
                    waits += [(earlier, name) for earlier in pending]
                    pending = []
    return sequences, waits
