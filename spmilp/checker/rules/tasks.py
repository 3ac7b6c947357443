"""Rules 1 to 5: tasks on able cores, for exactly their cycles, in order, with operands and room.

That a task runs once follows from the structure: the plan has one placement for each. What it reads
is valid where it reads it, and what it writes has bytes, for its whole run. A residency states what
fills it, truly."""

from collections.abc import Iterator
from math import ceil

from spmilp.checker.rules.case import Case, Finding, is_filled
from spmilp.checker.rules.sweeps import Span, clashes
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Placement, Residency
from spmilp.units import BufferIdx, CoreIdx, Cycles, ResidencyIdx, SliceIdx


def able_core(case: Case) -> Iterator[Finding]:
    """A task runs on a kind of core for which it has cycles."""
    kinds = case.machine.kinds
    for placement in case.plan.placements:
        kind = case.machine.cores[placement.core].kind
        cycles = case.problem.tasks[placement.task].cycles
        if cycles[kind] is None:
            who, where = case.task(placement.task), case.core(placement.core)
            able = ", ".join(each.name for each in kinds if cycles[each.index] is not None)
            what = f"{who} runs on {where} of kind {kinds[kind].name}"
            yield (who, where), f"{what}, which cannot run it; able: {able}"


def exact_cycles(case: Case) -> Iterator[Finding]:
    """A task takes its cycles on the core's kind and those of its remote reads."""
    for placement in case.plan.placements:
        kind = case.machine.cores[placement.core].kind
        own = case.problem.tasks[placement.task].cycles[kind]
        if own is None:
            continue
        extra, length = _cycles_of_remote_reads(case, placement), placement.end - placement.start
        if length != own + extra:
            who, where = case.task(placement.task), case.core(placement.core)
            yield (
                (who, where),
                f"{who} runs [{placement.start}, {placement.end}) = {length} cycles on {where}, "
                f"expected {own + extra} ({own} + {extra} for remote reads)",
            )


def _cycles_of_remote_reads(case: Case, placement: Placement) -> Cycles:
    """Return the extra cycles of the operands that lie outside the core's memory."""
    remote = case.machine.remote
    if remote is None:
        return 0
    local = case.machine.cores[placement.core].memory
    extra = 0
    reads = case.problem.tasks[placement.task].reads
    for slice_, residency in zip(reads, placement.reads, strict=True):
        memory = case.plan.residencies[residency].memory
        route = None if memory == local else case.routes.between(memory, local)
        hops = 0 if route is None else route.hops
        extra += ceil(case.problem.slices[slice_].bytes * hops * remote.cycles_per_byte_hop)
    return extra


def one_task_at_a_time(case: Case) -> Iterator[Finding]:
    """Tasks on one core do not overlap in time."""
    per_core: list[list[Span]] = [[] for _ in case.machine.cores]
    for each in case.plan.placements:
        turns = case.turns(each.start, each.end)
        per_core[each.core] += ((*turn, each.task) for turn in turns)
    for index, mine in enumerate(per_core):
        for (_, end, busy), (start, _, later) in clashes(mine):
            core, first, second = case.core(index), case.task(busy), case.task(later)
            message = f"{core} starts {second} at cycle {start} < {end}, the end of {first}"
            yield (core, first, second), message


def precedence(case: Case) -> Iterator[Finding]:
    """A task starts after the writers of what it reads and the tasks named in ``after`` end."""
    for placement, before in zip(case.plan.placements, case.problem.predecessors(), strict=True):
        for earlier in before:
            end = case.plan.placements[earlier].end
            if placement.start < end:
                first, second = case.task(earlier), case.task(placement.task)
                start = f"{second} starts at cycle {placement.start} < {end}"
                yield (second, first), f"{start}, the end of {first} that it follows"


def operands_served(case: Case) -> Iterator[Finding]:
    """The named residency holds the slice, is readable by the core and valid from start to end."""
    for use in case.task_uses:
        core = case.plan.placements[use.number].core
        for defect in (
            *case.defects_of_source(use),
            *_why_not_readable(case, case.plan.residencies[use.residency], core),
        ):
            who, what = case.task(use.number), case.residency(use.residency)
            yield (who, what), f"{who} reads {case.slice(use.slice)} from {what}, {defect}"


def _why_not_readable(case: Case, residency: Residency, core: CoreIdx) -> Iterator[str]:
    """Say why a core cannot read in a memory."""
    local, remote = case.machine.cores[core].memory, case.machine.remote
    if residency.memory == local:
        return
    memory, name = case.machine.memories[residency.memory], case.core(core)
    route = case.routes.between(residency.memory, local)
    ends = f"from {memory.name} to {case.memory(local)}"
    if remote is None:
        yield f"but {name} reads only in its own memory {case.memory(local)}"
    elif memory.kind is not MemoryKind.SPM:
        yield f"but {name} reads remotely in scratchpads only; {memory.name} is {memory.kind}"
    elif route is None:
        yield f"but no route leads {ends}"
    elif remote.longest_route is not None and route.hops > remote.longest_route:
        yield f"but {ends} there are {route.hops} links > {remote.longest_route}"


def filled_as_stated(case: Case) -> Iterator[Finding]:
    """What fills a residency names it, and what a task or transfer fills names its filler."""
    for index, defect in (
        *_wrong_fillers(case),
        *_fillers_that_begin_too_early(case),
        *_not_filled(case),
        *_copies_at_the_start(case),
    ):
        who = case.residency(index)
        yield (who,), f"{who} {defect}"


def _wrong_fillers(case: Case) -> Iterator[tuple[ResidencyIdx, str]]:
    done = {
        *((end, case.task(each.task)) for each in case.plan.placements for end in each.writes),
        *((end, f"transfer {m.index}") for m in case.plan.transfers for end in m.destinations),
    }
    stated = {
        each.index: f"transfer {each.filled_by_transfer}"
        if each.filled_by_task is None
        else case.task(each.filled_by_task)
        for each in case.plan.residencies
        if is_filled(each)
    }
    for index, filler in sorted(stated.items() - done):
        yield index, f"states to be filled by {filler}, which does not fill it"
    for index, filler in sorted(done - stated.items()):
        yield index, f"is filled by {filler}, but states {stated.get(index, 'nothing')}"


def _fillers_that_begin_too_early(case: Case) -> Iterator[tuple[ResidencyIdx, str]]:
    for move in case.plan.transfers:
        for index in move.destinations:
            start = case.plan.residencies[index].start
            if start > move.start:
                late = f"starts at cycle {start} > {move.start}"
                yield index, f"{late}, the start of transfer {move.index} that fills it"


def _not_filled(case: Case) -> Iterator[tuple[ResidencyIdx, str]]:
    scratch = {placement.scratch for placement in case.plan.placements}
    for each in case.plan.residencies:
        if is_filled(each):
            continue
        if each.slice is not None:
            for defect in _defects_of_initial(case, each, each.slice):
                yield each.index, f"is filled by nothing{defect}"
        elif each.index not in scratch:
            yield each.index, "holds no slice and is no task's scratch"


def _defects_of_initial(case: Case, residency: Residency, slice_: SliceIdx) -> Iterator[str]:
    """Say why a residency that nothing fills cannot be there at cycle 0."""
    buffer = case.problem.buffers[case.problem.slices[slice_].buffer]
    name = f"buffer {buffer.index}"
    if buffer.starts_in is None:
        yield f", but {name} is written by a task"
    elif buffer.starts_in != residency.memory:
        where = f"{case.memory(buffer.starts_in)}, not in {case.memory(residency.memory)}"
        yield f", but at cycle 0 {name} is in {where}"
    elif slice_ != buffer.index and case.home[residency.index] is None:
        yield f", but at cycle 0 {name} lies there as a whole"
    if residency.start != 0:
        yield f" and starts at cycle {residency.start}, expected 0"


def _copies_at_the_start(case: Case) -> Iterator[tuple[ResidencyIdx, str]]:
    """A buffer that starts where it has no place lies there once at cycle 0."""
    first: dict[BufferIdx, ResidencyIdx] = {}
    for each in case.plan.residencies:
        if is_filled(each) or each.slice is None or case.home[each.index] is not None:
            continue
        buffer = case.problem.slices[each.slice].buffer
        if each.slice != buffer or case.problem.buffers[buffer].starts_in != each.memory:
            continue
        if first.setdefault(buffer, each.index) != each.index:
            alone = f"buffer {buffer} lies in residency {first[buffer]} alone"
            yield each.index, f"is filled by nothing, but at cycle 0 {alone}"


def results_have_room(case: Case) -> Iterator[Finding]:
    """Each written buffer has a residency of it from the task's start to its end at least."""
    for placement in case.plan.placements:
        writes = case.problem.tasks[placement.task].writes
        for buffer, index in zip(writes, placement.writes, strict=True):
            defects = [*_defects_of_room(case, placement, index)]
            if case.plan.residencies[index].slice != buffer:
                defects.insert(0, f"which holds {case.content(index)}")
            for defect in defects:
                who, what = case.task(placement.task), case.residency(index)
                yield (who, what), f"{who} writes {case.buffer(buffer)} to {what}, {defect}"


def scratch_has_room(case: Case) -> Iterator[Finding]:
    """A task that needs scratch has a residency that is large enough, and no other task's."""
    owner: dict[ResidencyIdx, int] = {}
    for placement in case.plan.placements:
        needed, index = case.problem.tasks[placement.task].scratch, placement.scratch
        who = case.task(placement.task)
        if index is None:
            if needed > 0:
                yield (who,), f"{who} needs {needed} B of scratch and has 0 B"
            continue
        residency, what = case.plan.residencies[index], case.residency(index)
        defects = [*_defects_of_room(case, placement, index)]
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
            yield (who, what), f"{who} has scratch in {what}, {defect}"


def _defects_of_room(case: Case, placement: Placement, index: ResidencyIdx) -> Iterator[str]:
    """Say why a residency is not room for a task's bytes: elsewhere, too late, too short."""
    residency = case.plan.residencies[index]
    local = case.machine.cores[placement.core].memory
    if residency.memory != local:
        yield f"but {case.core(placement.core)} writes only in its own memory {case.memory(local)}"
    if residency.start > placement.start:
        yield f"which starts at cycle {residency.start} > {placement.start}, the task's start"
    if residency.end < placement.end:
        yield f"which ends at cycle {residency.end} < {placement.end}, the task's end"
