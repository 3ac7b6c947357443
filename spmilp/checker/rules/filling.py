"""Rules 4 and 5: a residency is filled by exactly what it says, and only by that."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Residency
from spmilp.units import ResidencyIdx, SliceIdx


def filled_as_stated(case: Case) -> Iterator[Violation]:
    """What fills a residency names it, and what a task or transfer fills names its filler."""
    scratch = {placement.scratch for placement in case.plan.placements}
    for residency in case.plan.residencies:
        for defect in _defects_of_filler(case, residency, scratch):
            yield _violation(case, residency.index, defect)
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


def _stated(case: Case, residency: Residency) -> str:
    if residency.filled_by_task is not None:
        return case.task(residency.filled_by_task)
    if residency.filled_by_transfer is not None:
        return f"transfer {residency.filled_by_transfer}"
    return "nothing"


def _violation(case: Case, residency: ResidencyIdx, defect: str) -> Violation:
    who = case.residency(residency)
    return Violation("filled_as_stated", (who,), f"{who} {defect}")
