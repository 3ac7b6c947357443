"""Rules 8, 10 and 11: outputs at the end, no value lost, stated quantities, pins."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spmilp.checker.rules.case import Case, Finding
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Residency
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import BufferPin
from spmilp.units import BufferIdx, Bytes, Femtojoules, LinkIdx, MemoryIdx


def outputs_stored(case: Case) -> Iterator[Finding]:
    """Each buffer that must end in a memory is valid there, as a whole, at the makespan.

    What an inference leaves for the next one may stay on the chip.
    """
    end, states = case.makespan, set[BufferIdx]()
    if case.plan.stream is not None:
        states.update(case.problem.states().values())
    for buffer in case.problem.buffers:
        if buffer.ends_in is None or buffer.index in states:
            continue
        holders = [case.plan.residencies[holder] for holder in case.holders(buffer.index)]
        there = [each for each in holders if each.memory == buffer.ends_in]
        if not any(case.valid_from[each.index] <= end <= each.end for each in there):
            last = max((each.end for each in there), default=None)
            found = "no residency of it is there" if last is None else f"its last ends at {last}"
            who, memory = case.buffer(buffer.index), case.memory(buffer.ends_in)
            yield (who, memory), f"{who} must be valid in {memory} at cycle {end}, but {found}"


def no_value_lost(case: Case) -> Iterator[Finding]:
    """A value that is still needed is valid in some memory."""
    for use in (*case.task_uses, *case.transfer_uses):
        if case.plan.residencies[use.residency].end >= use.end or not case.is_lost(use):
            continue
        ends = [
            case.plan.residencies[holder].end
            for holder in case.holders(use.slice)
            if case.valid_from[holder] < min(case.plan.residencies[holder].end, use.end)
        ]
        last = f"cycle {max(ends)}" if ends else "no cycle, for it never had one,"
        user, what = case.user(use), case.slice(use.slice)
        yield (
            (what, user),
            f"{user} needs {what} in cycles [{use.start}, {use.end}), but its last valid "
            f"residency ended at {last} and no copy was stored",
        )


_Path: TypeAlias = tuple[tuple[MemoryIdx, ...], tuple[LinkIdx, ...]]
"""The memories of a transfer's source and destinations, and the links between."""


def claims(case: Case) -> Iterator[Finding]:
    """Computed again from the plan, every quantity is equal, and the bound holds."""
    claim, machine = case.plan.claim, case.machine
    moved: Counter[_Path] = Counter()
    for move in case.plan.transfers:
        if move.start < case.begins:
            continue  # The prologue happens once.
        ends = (move.source, *move.destinations)
        memories = tuple([case.plan.residencies[end].memory for end in ends])
        moved[memories, move.route] += case.problem.slices[move.slice].bytes
    drams = {memory.index for memory in machine.memories if memory.kind is MemoryKind.DRAM}
    spms = {memory.index for memory in machine.memories if memory.kind is MemoryKind.SPM}
    tops = (
        max(each.offset, *each.instances, 0) + each.bytes
        for each in case.plan.residencies
        if each.memory in spms
    )
    stream = case.plan.stream
    quantities = {
        Quantity.MAKESPAN: (claim.makespan, case.makespan - case.begins),
        Quantity.DRAM_TRAFFIC: (
            claim.dram_traffic,
            sum(size * sum(end in drams for end in ends) for (ends, _), size in moved.items()),
        ),
        Quantity.ENERGY: (claim.energy, _energy(case, moved)),
        Quantity.PEAK_SPM: (claim.peak_spm, max(tops, default=0)),
        Quantity.PERIOD: (claim.period, None if stream is None else stream.period),
    }
    for quantity, (stated, found) in quantities.items():
        if stated != found:
            name = quantity.value
            yield ("plan", name), f"plan states {name} {stated}, but it is {found}"
    first = case.problem.objective.first
    value = quantities[first][1] or 0
    if first is Quantity.PERIOD and stream is None:
        value = case.makespan
    if claim.bound > value:
        yield ("plan", "bound"), f"plan states the bound {claim.bound} > {value}, its {first.value}"


def _energy(case: Case, moved: Mapping[_Path, Bytes]) -> Femtojoules:
    """Add up what the problem and the machine state; what they do not state counts nothing."""
    total = 0
    for placement in case.plan.placements:
        energy = case.problem.tasks[placement.task].energy
        if energy:
            total += energy[case.machine.cores[placement.core].kind] or 0
    for (memories, route), size in moved.items():
        ends = sum(case.machine.memories[memory].energy_per_byte or 0 for memory in memories)
        links = sum(case.machine.links[link].energy_per_byte or 0 for link in route)
        total += size * (ends + links)
    return total


def pinned_core(case: Case) -> Iterator[Finding]:
    """A task runs on a core of its pin, and on no forbidden one."""
    pins = case.problem.pins
    cores = {pin.task: pin.cores for pin in pins.tasks if pin.cores}
    for placement in case.plan.placements if cores or pins.forbidden else ():
        who, here = case.task(placement.task), case.core(placement.core)
        if placement.core in pins.forbidden:
            yield (who, here), f"{who} runs on {here}, which is forbidden"
        able = cores.get(placement.task, (placement.core,))
        if placement.core not in able:
            names = ", ".join(case.machine.cores[core].name for core in able[:8])
            yield (who, here), f"{who} runs on {here}, but is pinned to {names}"


def pinned_time(case: Case) -> Iterator[Finding]:
    """A task starts and ends within the cycles of its pin."""
    for pin in case.problem.pins.tasks:
        placement, who = case.plan.placements[pin.task], case.task(pin.task)
        start, end = placement.start - case.begins, placement.end - case.begins
        if start < pin.not_before:
            early = f"{who} starts at cycle {start} < {pin.not_before}"
            yield (who,), f"{early}, before which it is pinned not to"
        if pin.not_after is not None and end > pin.not_after:
            late = f"{who} ends at cycle {end} > {pin.not_after}"
            yield (who,), f"{late}, by which it is pinned to have ended"


def pinned_memory(case: Case) -> Iterator[Finding]:
    """A pinned buffer and its slices lie in no other memory of the same kind."""
    for pin, found in _residencies_of_pinned(case):
        kinds = {case.machine.memories[memory].kind for memory in pin.memories}
        for one in found:
            if case.machine.memories[one.memory].kind in kinds and one.memory not in pin.memories:
                who = case.residency(one.index)
                names = ", ".join(map(case.memory, pin.memories[:8]))
                yield (who,), f"{who} is of a buffer pinned to {names}"


def pinned_address(case: Case) -> Iterator[Finding]:
    """A buffer whose address is pinned lies there, and only as a whole."""
    for pin, found in _residencies_of_pinned(case):
        for one in found if pin.address is not None else ():
            who, address = case.residency(one.index), f"pinned to address {pin.address}"
            if one.memory not in pin.memories:
                continue
            if one.slice != pin.buffer:
                yield (who,), f"{who} is of slice {one.slice}, but the whole buffer is {address}"
            elif {one.offset, *one.instances} != {pin.address}:
                yield (who,), f"{who} lies at {one.offset}, but is {address}"


def pinned_resident(case: Case) -> Iterator[Finding]:
    """A resident buffer has one residency in its memories, which lasts until its last reader."""
    for pin, found in _residencies_of_pinned(case):
        for memory in pin.memories if pin.resident else ():
            there = [each for each in found if each.memory == memory]
            name = f"{case.slice(pin.buffer)} in {case.memory(memory)}"
            if len(there) != 1 or there[0].slice != pin.buffer:
                count = f"{len(there)} residencies, expected 1 of the whole"
                names = (name, *(case.residency(each.index) for each in there))
                yield names, f"{name} is pinned to be resident: {count}"
            slices = case.problem.slices
            last, reader = max(
                (
                    (case.plan.placements[task.index].end, task.index)
                    for task in case.problem.tasks
                    if any(slices[read].buffer == pin.buffer for read in task.reads)
                ),
                default=(0, 0),
            )
            for one in there[:1]:
                if one.end < last:
                    who, what = case.residency(one.index), case.task(reader)
                    yield (
                        (who, what),
                        f"{who} ends at cycle {one.end} < {last}, the end of {what}, until which "
                        "it is pinned to be resident",
                    )


def _residencies_of_pinned(case: Case) -> Iterator[tuple[BufferPin, list[Residency]]]:
    """Yield each pin of a buffer with the residencies of the buffer and of its slices."""
    found: defaultdict[BufferIdx, list[Residency]] = defaultdict(list)
    for one in case.plan.residencies if case.problem.pins.buffers else ():
        if one.slice is not None:
            found[case.problem.slices[one.slice].buffer].append(one)
    for pin in case.problem.pins.buffers:
        yield pin, found[pin.buffer]
