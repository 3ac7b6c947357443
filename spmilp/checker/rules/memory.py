"""Rules 6 and 9: sizes, bytes inside a memory, bytes shared at a time, DRAM tensors."""

from collections import defaultdict
from collections.abc import Iterator

from spmilp.checker.rules.case import Case, Finding, Use
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.plan import Placement, Residency
from spmilp.problem.problem import DramTensor
from spmilp.units import Bytes, Cycles, ResidencyIdx


def exact_size(case: Case) -> Iterator[Finding]:
    """A residency has the bytes of its slice."""
    for residency in case.plan.residencies:
        if residency.slice is None:
            continue
        size = case.problem.slices[residency.slice].bytes
        if residency.bytes != size:
            who, what = case.residency(residency.index), case.slice(residency.slice)
            yield (who, what), f"{who} has {residency.bytes} B, expected {size} B of {what}"


def inside_memory(case: Case) -> Iterator[Finding]:
    """Bytes lie below the memory's size, outside reserved ranges, at aligned offsets.

    A residency inside a DRAM tensor is bound by its place instead; its tensor is checked.
    """
    for residency, home in zip(case.plan.residencies, case.home, strict=True):
        memory = case.machine.memories[residency.memory]
        for offset in (residency.offset, *residency.instances) if home is None else ():
            for defect in _defects(memory, offset, residency.bytes):
                who = case.residency(residency.index)
                yield (who, memory.name), f"{who}: {defect} at cycle {residency.start}"
    for tensor, address in _tensors(case):
        memory = case.machine.memories[tensor.memory]
        for defect in _defects(memory, address, tensor.bytes):
            who = case.tensor(tensor.index)
            yield (who, memory.name), f"{who}: {defect}"


def _tensors(case: Case) -> Iterator[tuple[DramTensor, Bytes]]:
    """Yield each DRAM tensor and its address, in a stream those of all its instances."""
    stream = case.plan.stream
    yield from zip(case.problem.tensors, case.plan.tensors, strict=True)
    for index, more in enumerate(() if stream is None else stream.instances):
        yield from ((case.problem.tensors[index], address) for address in more)


def _defects(memory: Memory, offset: Bytes, size: Bytes) -> Iterator[str]:
    end = offset + size
    if memory.size is not None and end > memory.size:
        yield f"{end} B > {memory.size} B of {memory.name}"
    if offset % memory.alignment:
        yield f"offset {offset} B is no multiple of {memory.alignment} B in {memory.name}"
    for taken in memory.reserved:
        if offset < taken.end and taken.start < end:
            ranges = f"[{offset}, {end}) meet the reserved [{taken.start}, {taken.end})"
            yield f"bytes {ranges} of {memory.name}"


def no_shared_bytes(case: Case) -> Iterator[Finding]:
    """Residencies alive in the same cycle share no bytes, unless the problem permits the pair."""
    for one, other in case.sharing:
        if not any(_task_in_place(case, *pair) for pair in ((one, other), (other, one))):
            yield _sharing(case, one, other, "")
    for one, other in case.sharing_across:
        names = case.residency(one), case.residency(other)
        yield names, f"{names[0]} and {names[1]} share bytes in different inferences of the stream"


def in_place(case: Case) -> Iterator[Finding]:
    """A result replaces an operand at its offset, only while the task runs, unless others read it.

    That is, where the task reads the one and writes the other, and the problem permits it; and
    nothing else reads the old value after the task has started.
    """
    uses: defaultdict[ResidencyIdx, list[Use]] = defaultdict(list)
    for use in (*case.task_uses, *case.transfer_uses):
        uses[use.residency].append(use)
    for pair in case.sharing:
        for old, new in (pair, pair[::-1]):
            placement = _task_in_place(case, old, new)
            if placement is not None:
                for reason in _why_not_in_place(case, old, new, placement, uses[old]):
                    yield _sharing(case, old, new, f", {reason}")
                break


def _task_in_place(case: Case, old: ResidencyIdx, new: ResidencyIdx) -> Placement | None:
    """Return the task that reads all of ``old`` and may write ``new`` in its place, if any."""
    residency = case.plan.residencies[new]
    if residency.filled_by_task is None:
        return None
    placement = case.plan.placements[residency.filled_by_task]
    task, held = case.problem.tasks[placement.task], case.plan.residencies[old].slice
    if held not in task.reads or placement.reads[task.reads.index(held)] != old:
        return None
    if new not in placement.writes or (held, residency.slice) not in task.in_place:
        return None
    return placement


def _why_not_in_place(
    case: Case, old: ResidencyIdx, new: ResidencyIdx, placement: Placement, uses: list[Use]
) -> Iterator[str]:
    before, after = case.plan.residencies[old], case.plan.residencies[new]
    who = case.task(placement.task)
    for one, other in zip(case.offsets(before), case.offsets(after), strict=True):
        if one != other and one < other + after.bytes and other < one + before.bytes:
            yield f"in place at offset {other} B, expected {one} B"
    first, last = _shared_cycles(before, after)
    if first < placement.start or last > placement.end:
        yield f"expected only while {who} runs, in [{placement.start}, {placement.end})"
    for use in uses:
        own = use.kind == "task" and use.number == placement.task
        if own and use.slice != before.slice:
            yield f"but {who} also reads {case.slice(use.slice)} there"
        elif not own and use.end > placement.start:
            yield (
                f"but {case.user(use)} reads the old value until cycle {use.end} > "
                f"{placement.start}, the start of {who}"
            )


def _shared_cycles(one: Residency, other: Residency) -> tuple[Cycles, Cycles]:
    return max(one.start, other.start), min(one.end, other.end)


def _sharing(case: Case, one: ResidencyIdx, other: ResidencyIdx, detail: str) -> Finding:
    a, b = case.plan.residencies[one], case.plan.residencies[other]
    low, high = max(a.offset, b.offset), min(a.offset + a.bytes, b.offset + b.bytes)
    first, last = _shared_cycles(a, b)
    what = f"{high - low} B [{low}, {high})" if case.home[one] is None else "elements of a tensor"
    names = case.residency(one), case.residency(other)
    message = f"{names[0]} and {names[1]} share {what} during cycles [{first}, {last}){detail}"
    return names, message


def at_its_place(case: Case) -> Iterator[Finding]:
    """Whatever has a place in a tensor of this DRAM lies there."""
    for residency, home in zip(case.plan.residencies, case.home, strict=True):
        if home is None or residency.slice is None:
            continue
        address = case.where(residency.slice, residency.index).offset
        if residency.offset != address:
            who, tensor = case.residency(residency.index), case.problem.tensors[home]
            yield (
                (who, case.tensor(home)),
                f"{who} lies at address {residency.offset}, expected {address}, its place in "
                f"tensor {tensor.name} at {case.plan.tensors[home]}",
            )


def dram_tensors(case: Case) -> Iterator[Finding]:
    """DRAM tensors share no bytes with each other, nor with anything that has no place in them.

    In a stream those of a state are what an inference leaves.
    """
    tensors = [
        (case.tensor(tensor.index), tensor.memory, address, address + tensor.bytes)
        for tensor, address in _tensors(case)
        if tensor.state is None or case.plan.stream is None
    ]
    others = [
        (case.residency(each.index), each.memory, offset, offset + each.bytes)
        for each, home in zip(case.plan.residencies, case.home, strict=True)
        if home is None and case.machine.memories[each.memory].kind is MemoryKind.DRAM
        for offset in (each.offset, *each.instances)
    ]
    for place, (tensor, memory, start, end) in enumerate(tensors):
        for who, where, first, last in (*tensors[place + 1 :], *others):
            if where == memory and first < end and start < last:
                name = case.memory(memory)
                yield (
                    (who, tensor, name),
                    f"{who} lies at [{first}, {last}), but {tensor} has [{start}, {end}) of {name}",
                )
