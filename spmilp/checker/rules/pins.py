"""Rule 11: what is pinned is where and when its pin says."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Residency
from spmilp.problem.pins import BufferPin
from spmilp.units import Cycles, MemoryIdx


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
