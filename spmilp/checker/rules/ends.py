"""Rules 8, 10 and 11: outputs at the end, no value lost, stated quantities, pins."""

from collections.abc import Iterator
from typing import TypeAlias

from spmilp.checker.rules.case import Case, Use
from spmilp.checker.violation import Violation
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Residency
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import BufferPin
from spmilp.units import Bytes, Cycles, Femtojoules, LinkIdx, MemoryIdx


def outputs_stored(case: Case) -> Iterator[Violation]:
    """Each buffer that must end in a memory is valid there, as a whole, at the makespan."""
    end = case.makespan
    for buffer in case.problem.buffers:
        if buffer.ends_in is None:
            continue
        there = [
            holder
            for holder in case.holders(buffer.index)
            if case.plan.residencies[holder].memory == buffer.ends_in
        ]
        if not any(case.valid_from[r] <= end <= case.plan.residencies[r].end for r in there):
            last = max((case.plan.residencies[r].end for r in there), default=None)
            found = "no residency of it is there" if last is None else f"its last ends at {last}"
            memory = case.memory(buffer.ends_in)
            who = f"buffer {buffer.index} ({buffer.name})"
            message = f"{who} must be valid in {memory} at cycle {end}, but {found}"
            yield Violation("outputs_stored", (who, memory), message)


def no_value_lost(case: Case) -> Iterator[Violation]:
    """A value that is still needed is valid in some memory."""
    for use in (*case.task_uses, *case.transfer_uses):
        if case.plan.residencies[use.residency].end < use.end and case.is_lost(use):
            last = _last_valid_cycle(case, use)
            user, what = case.user(use), case.slice(use.slice)
            yield Violation(
                "no_value_lost",
                (what, user),
                f"{user} needs {what} in cycles [{use.start}, {use.end}), but its last valid "
                f"residency ended at {last} and no copy was stored",
            )


def _last_valid_cycle(case: Case, use: Use) -> str:
    ends = [
        case.plan.residencies[holder].end
        for holder in case.holders(use.slice)
        if case.valid_from[holder] < min(case.plan.residencies[holder].end, use.end)
    ]
    return f"cycle {max(ends)}" if ends else "no cycle, for it never had one,"


_Path: TypeAlias = tuple[tuple[MemoryIdx, ...], tuple[LinkIdx, ...]]
"""The memories of a transfer's source and destinations, and the links between."""


def claims(case: Case) -> Iterator[Violation]:
    """Computed again from the plan, every quantity is equal, and the bound holds."""
    claim = case.plan.claim
    stated = {
        Quantity.MAKESPAN: claim.makespan,
        Quantity.DRAM_TRAFFIC: claim.dram_traffic,
        Quantity.ENERGY: claim.energy,
        Quantity.PEAK_SPM: claim.peak_spm,
    }
    moved = _moved(case)
    found = {
        Quantity.MAKESPAN: case.makespan,
        Quantity.DRAM_TRAFFIC: _dram_traffic(case, moved),
        Quantity.ENERGY: _energy(case, moved),
        Quantity.PEAK_SPM: _peak_spm(case),
    }
    for quantity in Quantity:
        if stated[quantity] != found[quantity]:
            yield Violation(
                "claims",
                ("plan", quantity.value),
                f"plan states {quantity.value} {stated[quantity]}, but it is {found[quantity]}",
            )
    first = case.problem.objective.first
    if claim.bound > found[first]:
        yield Violation(
            "claims",
            ("plan", "bound"),
            f"plan states the bound {claim.bound} > {found[first]}, its {first.value}",
        )


def _moved(case: Case) -> dict[_Path, Bytes]:
    """Return the bytes of all transfers that have the same memories and route."""
    total: dict[_Path, Bytes] = {}
    slices, residencies = case.problem.slices, case.plan.residencies
    for move in case.plan.transfers:
        ends = tuple([residencies[end].memory for end in (move.source, *move.destinations)])
        path = ends, move.route
        total[path] = total.get(path, 0) + slices[move.slice].bytes
    return total


def _dram_traffic(case: Case, moved: dict[_Path, Bytes]) -> Bytes:
    return sum(
        size
        for (memories, _), size in moved.items()
        for memory in memories
        if case.machine.memories[memory].kind is MemoryKind.DRAM
    )


def _energy(case: Case, moved: dict[_Path, Bytes]) -> Femtojoules:
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


def _peak_spm(case: Case) -> Bytes:
    return max(
        (
            residency.offset + residency.bytes
            for residency in case.plan.residencies
            if case.machine.memories[residency.memory].kind is MemoryKind.SPM
        ),
        default=0,
    )


def pinned_core(case: Case) -> Iterator[Violation]:
    """A task runs on a core of its pin, and on no forbidden one."""
    pins = case.problem.pins
    cores = {pin.task: pin.cores for pin in pins.tasks if pin.cores}
    forbidden = frozenset(pins.forbidden)
    if not cores and not forbidden:
        return
    for placement in case.plan.placements:
        who, here = case.task(placement.task), case.core(placement.core)
        if placement.core in forbidden:
            yield Violation("pinned_core", (who, here), f"{who} runs on {here}, which is forbidden")
        able = cores.get(placement.task, (placement.core,))
        if placement.core not in able:
            names = ", ".join(case.machine.cores[core].name for core in able[:8])
            yield Violation(
                "pinned_core", (who, here), f"{who} runs on {here}, but is pinned to {names}"
            )


def pinned_time(case: Case) -> Iterator[Violation]:
    """A task starts and ends within the cycles of its pin."""
    for pin in case.problem.pins.tasks:
        placement, who = case.plan.placements[pin.task], case.task(pin.task)
        if placement.start < pin.not_before:
            yield Violation(
                "pinned_time",
                (who,),
                f"{who} starts at cycle {placement.start} < {pin.not_before}, before which it is "
                "pinned not to",
            )
        if pin.not_after is not None and placement.end > pin.not_after:
            yield Violation(
                "pinned_time",
                (who,),
                f"{who} ends at cycle {placement.end} > {pin.not_after}, by which it is pinned to "
                "have ended",
            )


def pinned_memory(case: Case) -> Iterator[Violation]:
    """A pinned buffer and its slices lie in no other memory of the same kind."""
    for pin, found in _residencies_of_pinned(case):
        kinds = {case.machine.memories[memory].kind for memory in pin.memories}
        for one in found:
            if case.machine.memories[one.memory].kind in kinds and one.memory not in pin.memories:
                who = case.residency(one.index)
                names = ", ".join(map(case.memory, pin.memories[:8]))
                yield Violation("pinned_memory", (who,), f"{who} is of a buffer pinned to {names}")


def pinned_address(case: Case) -> Iterator[Violation]:
    """A buffer whose address is pinned lies there, and only as a whole."""
    for pin, found in _residencies_of_pinned(case):
        for one in found if pin.address is not None else ():
            if one.memory not in pin.memories:
                continue
            who = case.residency(one.index)
            if one.slice != pin.buffer:
                yield Violation(
                    "pinned_address",
                    (who,),
                    f"{who} is of slice {one.slice}, but the whole buffer is pinned to address "
                    f"{pin.address}",
                )
            elif one.offset != pin.address:
                yield Violation(
                    "pinned_address",
                    (who,),
                    f"{who} lies at {one.offset}, but is pinned to address {pin.address}",
                )


def pinned_resident(case: Case) -> Iterator[Violation]:
    """A resident buffer has one residency in its memories, which lasts until its last reader."""
    for pin, found in _residencies_of_pinned(case):
        for memory in pin.memories if pin.resident else ():
            yield from _is_resident(case, pin, memory, [x for x in found if x.memory == memory])


def _is_resident(
    case: Case, pin: BufferPin, memory: MemoryIdx, found: list[Residency]
) -> Iterator[Violation]:
    name = f"{case.slice(pin.buffer)} in {case.memory(memory)}"
    if len(found) != 1 or found[0].slice != pin.buffer:
        yield Violation(
            "pinned_resident",
            (name, *(case.residency(one.index) for one in found)),
            f"{name} is pinned to be resident: {len(found)} residencies, expected 1 of the whole",
        )
    last, reader = _last_reader(case, pin)
    for one in found[:1]:
        if one.end < last:
            who = case.residency(one.index)
            yield Violation(
                "pinned_resident",
                (who, reader),
                f"{who} ends at cycle {one.end} < {last}, the end of {reader}, until which it is "
                "pinned to be resident",
            )


def _last_reader(case: Case, pin: BufferPin) -> tuple[Cycles, str]:
    """Return the last end of a task that reads any of a buffer, and the task's name."""
    slices = case.problem.slices
    ends = (
        (case.plan.placements[task.index].end, task.index)
        for task in case.problem.tasks
        if any(slices[read].buffer == pin.buffer for read in task.reads)
    )
    end, task = max(ends, default=(0, 0))
    return end, case.task(task) if end else ""


def _residencies_of_pinned(case: Case) -> Iterator[tuple[BufferPin, list[Residency]]]:
    """Yield each pin of a buffer with the residencies of the buffer and of its slices."""
    found: dict[int, list[Residency]] = {pin.buffer: [] for pin in case.problem.pins.buffers}
    for one in case.plan.residencies if found else ():
        if one.slice is not None:
            buffer = case.problem.slices[one.slice].buffer
            if buffer in found:
                found[buffer].append(one)
    for pin in case.problem.pins.buffers:
        yield pin, found[pin.buffer]
