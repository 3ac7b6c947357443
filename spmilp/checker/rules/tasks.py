"""Rules 1 to 5: tasks on able cores, for exactly their cycles, in order, with operands and room.

That a task runs once follows from the structure: the plan has one placement for each. What it reads
is valid where it reads it, and what it writes has bytes, for its whole run. A residency states what
fills it, truly."""

from collections.abc import Iterator
from math import ceil

from spmilp.checker.rules.case import Case, Use
from spmilp.checker.violation import Violation
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Placement, Residency
from spmilp.units import BufferIdx, CoreIdx, Cycles, ResidencyIdx, SliceIdx


def able_core(case: Case) -> Iterator[Violation]:
    """A task runs on a kind of core for which it has cycles."""
    for placement in case.plan.placements:
        core = case.machine.cores[placement.core]
        cycles = case.problem.tasks[placement.task].cycles
        if cycles[core.kind] is None:
            who = case.task(placement.task)
            able = [kind.name for kind in case.machine.kinds if cycles[kind.index] is not None]
            yield Violation(
                "able_core",
                (who, case.core(core.index)),
                f"{who} runs on {case.core(core.index)} of kind "
                f"{case.machine.kinds[core.kind].name}, which cannot run it; able: "
                f"{', '.join(able)}",
            )


def exact_cycles(case: Case) -> Iterator[Violation]:
    """A task takes its cycles on the core's kind and those of its remote reads."""
    for placement in case.plan.placements:
        kind = case.machine.cores[placement.core].kind
        own = case.problem.tasks[placement.task].cycles[kind]
        if own is None:
            continue
        extra = _cycles_of_remote_reads(case, placement)
        if placement.end - placement.start != own + extra:
            who = case.task(placement.task)
            yield Violation(
                "exact_cycles",
                (who, case.core(placement.core)),
                f"{who} runs [{placement.start}, {placement.end}) = "
                f"{placement.end - placement.start} cycles on {case.core(placement.core)}, "
                f"expected {own + extra} ({own} + {extra} for remote reads)",
            )


def _cycles_of_remote_reads(case: Case, placement: Placement) -> Cycles:
    """Return the extra cycles of the operands that lie outside the core's memory."""
    remote = case.machine.remote
    if remote is None:
        return 0
    local = case.machine.cores[placement.core].memory
    task = case.problem.tasks[placement.task]
    extra = 0
    for slice_, residency in zip(task.reads, placement.reads, strict=True):
        memory = case.plan.residencies[residency].memory
        if memory == local:
            continue
        route = case.routes.between(memory, local)
        hops = 0 if route is None else len(route.links)
        extra += ceil(case.problem.slices[slice_].bytes * hops * remote.cycles_per_byte_hop)
    return extra


def one_task_at_a_time(case: Case) -> Iterator[Violation]:
    """Tasks on one core do not overlap in time."""
    per_core: list[list[Placement]] = [[] for _ in case.machine.cores]
    for placement in case.plan.placements:
        per_core[placement.core].append(placement)
    for index, mine in enumerate(per_core):
        mine.sort(key=lambda placement: (placement.start, placement.end, placement.task))
        busy: Placement | None = None
        for later in mine:
            if busy is not None and later.start < busy.end:
                core, first, second = case.core(index), case.task(busy.task), case.task(later.task)
                yield Violation(
                    "one_task_at_a_time",
                    (core, first, second),
                    f"{core} starts {second} at cycle {later.start} < {busy.end}, the end of "
                    f"{first}",
                )
            if busy is None or later.end > busy.end:
                busy = later


def precedence(case: Case) -> Iterator[Violation]:
    """A task starts after the writers of what it reads and the tasks named in ``after`` end."""
    for placement, before in zip(case.plan.placements, case.problem.predecessors(), strict=True):
        for earlier in before:
            end = case.plan.placements[earlier].end
            if placement.start < end:
                first, second = case.task(earlier), case.task(placement.task)
                yield Violation(
                    "precedence",
                    (second, first),
                    f"{second} starts at cycle {placement.start} < {end}, the end of {first} "
                    "that it follows",
                )


def operands_served(case: Case) -> Iterator[Violation]:
    """The named residency holds the slice, is readable by the core and valid from start to end."""
    for use in case.task_uses:
        residency = case.plan.residencies[use.residency]
        core = case.plan.placements[use.number].core
        for defect in _defects(case, use, residency, core):
            who, what = case.task(use.number), case.residency(use.residency)
            yield Violation(
                "operands_served",
                (who, what),
                f"{who} reads {case.slice(use.slice)} from {what}, {defect}",
            )


def _defects(case: Case, use: Use, residency: Residency, core: CoreIdx) -> Iterator[str]:
    if not case.holds(use.residency, use.slice):
        held = "scratch" if residency.slice is None else case.slice(residency.slice)
        yield f"which holds {held}"
    valid = case.valid_from[use.residency]
    if valid > use.start:
        yield f"which is valid from cycle {valid} > {use.start}, the task's start"
    if residency.end < use.end and not case.is_lost(use):
        yield f"which ends at cycle {residency.end} < {use.end}, the task's end"
    reason = _why_not_readable(case, residency, core)
    if reason:
        yield reason


def _why_not_readable(case: Case, residency: Residency, core: CoreIdx) -> str:
    """Return why a core cannot read in a memory; empty when it can."""
    local = case.machine.cores[core].memory
    if residency.memory == local:
        return ""
    memory, name = case.machine.memories[residency.memory], case.core(core)
    remote = case.machine.remote
    if remote is None:
        return f"but {name} reads only in its own memory {case.memory(local)}"
    if memory.kind is not MemoryKind.SPM:
        return f"but {name} reads remotely in scratchpads only; {memory.name} is {memory.kind}"
    route = case.routes.between(residency.memory, local)
    if route is None:
        return f"but no route leads from {memory.name} to {case.memory(local)}"
    if remote.longest_route is not None and len(route.links) > remote.longest_route:
        return (
            f"but from {memory.name} to {case.memory(local)} there are {len(route.links)} links "
            f"> {remote.longest_route}"
        )
    return ""


def filled_as_stated(case: Case) -> Iterator[Violation]:
    """What fills a residency names it, and what a task or transfer fills names its filler."""
    scratch = {placement.scratch for placement in case.plan.placements}
    for residency in case.plan.residencies:
        for defect in _defects_of_filler(case, residency, scratch):
            yield _violation(case, residency.index, defect)
    yield from _initial_copies(case)
    for placement in case.plan.placements:
        for index in placement.writes:
            filler = case.plan.residencies[index].filled_by_task
            if filler != placement.task:
                yield _violation(
                    case,
                    index,
                    f"is written by {case.task(placement.task)}, but states "
                    f"{_stated(case, case.plan.residencies[index])}",
                )
    for move in case.plan.transfers:
        for index in move.destinations:
            filler = case.plan.residencies[index].filled_by_transfer
            if filler != move.index:
                yield _violation(
                    case,
                    index,
                    f"is a destination of transfer {move.index}, but states "
                    f"{_stated(case, case.plan.residencies[index])}",
                )


def _defects_of_filler(
    case: Case, residency: Residency, scratch: set[ResidencyIdx | None]
) -> Iterator[str]:
    if residency.filled_by_task is not None:
        placement = case.plan.placements[residency.filled_by_task]
        if residency.index not in placement.writes:
            task = case.task(residency.filled_by_task)
            yield f"states to be filled by {task}, which does not write it"
    elif residency.filled_by_transfer is not None:
        move = case.plan.transfers[residency.filled_by_transfer]
        if residency.index not in move.destinations:
            yield f"states to be filled by transfer {move.index}, which does not go there"
        elif residency.start > move.start:
            yield (
                f"starts at cycle {residency.start} > {move.start}, the start of "
                f"transfer {move.index} "
                "that fills it"
            )
    elif residency.slice is not None:
        yield from _defects_of_initial(case, residency, residency.slice)
    elif residency.index not in scratch:
        yield "holds no slice and is no task's scratch"


def _defects_of_initial(case: Case, residency: Residency, slice_: SliceIdx) -> Iterator[str]:
    """Say why a residency that nothing fills cannot be there at cycle 0."""
    buffer = case.problem.buffers[case.problem.slices[slice_].buffer]
    if buffer.starts_in is None:
        yield f"is filled by nothing, but buffer {buffer.index} is written by a task"
    elif buffer.starts_in != residency.memory:
        yield (
            f"is filled by nothing, but at cycle 0 buffer {buffer.index} is in "
            f"{case.memory(buffer.starts_in)}, not in {case.memory(residency.memory)}"
        )
    elif slice_ != buffer.index and case.home[residency.index] is None:
        yield f"is filled by nothing, but at cycle 0 buffer {buffer.index} lies there as a whole"
    if residency.start != 0:
        yield f"is filled by nothing and starts at cycle {residency.start}, expected 0"


def _initial_copies(case: Case) -> Iterator[Violation]:
    """A buffer that starts where it has no place lies there once at cycle 0."""
    first: dict[BufferIdx, ResidencyIdx] = {}
    for residency in case.plan.residencies:
        filled = residency.filled_by_task is not None or residency.filled_by_transfer is not None
        if filled or residency.slice is None or case.home[residency.index] is not None:
            continue
        buffer = case.problem.slices[residency.slice].buffer
        if residency.slice != buffer or case.problem.buffers[buffer].starts_in != residency.memory:
            continue
        if first.setdefault(buffer, residency.index) != residency.index:
            yield _violation(
                case,
                residency.index,
                f"is filled by nothing, but at cycle 0 buffer {buffer} lies in residency "
                f"{first[buffer]} alone",
            )


def _stated(case: Case, residency: Residency) -> str:
    if residency.filled_by_task is not None:
        return case.task(residency.filled_by_task)
    if residency.filled_by_transfer is not None:
        return f"transfer {residency.filled_by_transfer}"
    return "nothing"


def _violation(case: Case, residency: ResidencyIdx, defect: str) -> Violation:
    who = case.residency(residency)
    return Violation("filled_as_stated", (who,), f"{who} {defect}")


def results_have_room(case: Case) -> Iterator[Violation]:
    """Each written buffer has a residency of it from the task's start to its end at least."""
    for placement in case.plan.placements:
        task = case.problem.tasks[placement.task]
        for buffer, residency in zip(task.writes, placement.writes, strict=True):
            held = case.plan.residencies[residency].slice
            name = case.problem.buffers[buffer].name
            purpose = f"writes buffer {buffer} ({name}) to"
            if held != buffer:
                what = "scratch" if held is None else case.slice(held)
                defect = f"which holds {what}"
                yield _result_violation(
                    "results_have_room", case, placement, residency, purpose, defect
                )
            for defect in _defects_of_results(case, placement, residency):
                yield _result_violation(
                    "results_have_room", case, placement, residency, purpose, defect
                )


def scratch_has_room(case: Case) -> Iterator[Violation]:
    """A task that needs scratch has a residency that is large enough, and no other task's."""
    owner: dict[ResidencyIdx, int] = {}
    for placement in case.plan.placements:
        needed, index = case.problem.tasks[placement.task].scratch, placement.scratch
        who = case.task(placement.task)
        if index is None:
            if needed > 0:
                message = f"{who} needs {needed} B of scratch and has 0 B"
                yield Violation("scratch_has_room", (who,), message)
            continue
        defects = list(_defects_of_results(case, placement, index))
        residency = case.plan.residencies[index]
        if needed == 0:
            defects.append("but needs 0 B of scratch")
        if residency.slice is not None:
            defects.append(f"which holds {case.slice(residency.slice)}")
        elif residency.bytes < needed:
            defects.append(f"which has {residency.bytes} B < {needed} B")
        if index in owner:
            defects.append(f"which is the scratch of {case.task(owner[index])} too")
        owner.setdefault(index, placement.task)
        for defect in defects:
            purpose = "has scratch in"
            yield _result_violation("scratch_has_room", case, placement, index, purpose, defect)


def _defects_of_results(case: Case, placement: Placement, index: ResidencyIdx) -> Iterator[str]:
    """Say why a residency is not room for a task's bytes: elsewhere, too late, too short."""
    residency = case.plan.residencies[index]
    local = case.machine.cores[placement.core].memory
    if residency.memory != local:
        yield f"but {case.core(placement.core)} writes only in its own memory {case.memory(local)}"
    if residency.start > placement.start:
        yield f"which starts at cycle {residency.start} > {placement.start}, the task's start"
    if residency.end < placement.end:
        yield f"which ends at cycle {residency.end} < {placement.end}, the task's end"


def _result_violation(
    rule: str,
    case: Case,
    placement: Placement,
    residency: ResidencyIdx,
    purpose: str,
    defect: str,
) -> Violation:
    who, what = case.task(placement.task), case.residency(residency)
    return Violation(rule, (who, what), f"{who} {purpose} {what}, {defect}")
