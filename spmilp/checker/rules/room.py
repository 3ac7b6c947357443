"""Rule 5: what a task writes, and its scratch, has bytes in the core's memory for the whole run."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Placement
from spmilp.units import ResidencyIdx


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
                yield _violation("results_have_room", case, placement, residency, purpose, defect)
            for defect in _defects(case, placement, residency):
                yield _violation("results_have_room", case, placement, residency, purpose, defect)


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
        defects = list(_defects(case, placement, index))
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
            yield _violation("scratch_has_room", case, placement, index, purpose, defect)


def _defects(case: Case, placement: Placement, index: ResidencyIdx) -> Iterator[str]:
    """Say why a residency is not room for a task's bytes: elsewhere, too late, too short."""
    residency = case.plan.residencies[index]
    local = case.machine.cores[placement.core].memory
    if residency.memory != local:
        yield f"but {case.core(placement.core)} writes only in its own memory {case.memory(local)}"
    if residency.start > placement.start:
        yield f"which starts at cycle {residency.start} > {placement.start}, the task's start"
    if residency.end < placement.end:
        yield f"which ends at cycle {residency.end} < {placement.end}, the task's end"


def _violation(
    rule: str,
    case: Case,
    placement: Placement,
    residency: ResidencyIdx,
    purpose: str,
    defect: str,
) -> Violation:
    who, what = case.task(placement.task), case.residency(residency)
    return Violation(rule, (who, what), f"{who} {purpose} {what}, {defect}")
