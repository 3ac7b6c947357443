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
        needed, residency = case.problem.tasks[placement.task].scratch, placement.scratch
        who = case.task(placement.task)
        if residency is None:
            if needed > 0:
                message = f"{who} needs {needed} B of scratch and has 0 B"
                yield Violation("scratch_has_room", (who,), message)
            continue
        defects = list(_defects(case, placement, residency))
        stay = case.plan.residencies[residency]
        if needed == 0:
            defects.append("but needs 0 B of scratch")
        if stay.slice is not None:
            defects.append(f"which holds {case.slice(stay.slice)}")
        elif stay.bytes < needed:
            defects.append(f"which has {stay.bytes} B < {needed} B")
        if residency in owner:
            defects.append(f"which is the scratch of {case.task(owner[residency])} too")
        owner.setdefault(residency, placement.task)
        for defect in defects:
            purpose = "has scratch in"
            yield _violation("scratch_has_room", case, placement, residency, purpose, defect)


def _defects(case: Case, placement: Placement, residency: ResidencyIdx) -> Iterator[str]:
    """Say why a residency is not room for a task's bytes: elsewhere, too late, too short."""
    stay = case.plan.residencies[residency]
    local = case.machine.cores[placement.core].memory
    if stay.memory != local:
        yield f"but {case.core(placement.core)} writes only in its own memory {case.memory(local)}"
    if stay.start > placement.start:
        yield f"which starts at cycle {stay.start} > {placement.start}, the task's start"
    if stay.end < placement.end:
        yield f"which ends at cycle {stay.end} < {placement.end}, the task's end"


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
