"""Rule 6: no two residencies have the same bytes at the same time, save a pair in place."""

from collections.abc import Iterator
from itertools import islice

from spmilp.checker.rules.case import Case, Use
from spmilp.checker.rules.overlap import Rectangle, overlapping_boxes, overlapping_pairs
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Placement, Residency
from spmilp.units import ResidencyIdx

ENOUGH = 10_000
"""Pairs looked at beyond those that the problem permits; so many are all forbidden ones."""


def shared_bytes(case: Case) -> Iterator[Violation]:
    """Residencies alive in the same cycle occupy disjoint bytes, unless one replaces the other.

    ``no_shared_bytes`` forbids the pairs that the problem does not permit. ``in_place`` says of the
    others, where a task reads the one and writes the other: same offset, only while the task runs,
    and only when nothing else reads the old value after the task has started.
    """
    uses = _uses_of_each(case)
    permitted = sum(len(task.in_place) for task in case.problem.tasks)
    for one, other in islice(_pairs(case), permitted + ENOUGH):
        for old, new in ((one, other), (other, one)):
            placement = _task_in_place(case, old, new)
            if placement is not None:
                for reason in _why_not_in_place(case, old, new, placement, uses.get(old, [])):
                    yield _violation("in_place", case, old, new, f", {reason}")
                break
        else:
            yield _violation("no_shared_bytes", case, one, other, "")


def _pairs(case: Case) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the residencies that share bytes of a memory at some cycle."""
    per_memory: list[list[Rectangle]] = [[] for _ in case.machine.memories]
    for residency, home in zip(case.plan.residencies, case.home, strict=True):
        if home is None:
            end = residency.offset + residency.bytes
            rectangle = Rectangle(
                residency.offset, end, residency.index, residency.start, residency.end
            )
            per_memory[residency.memory].append(rectangle)
    for rectangles in per_memory:
        yield from overlapping_pairs(rectangles)
    yield from overlapping_boxes(case)


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


def _uses_of_each(case: Case) -> dict[ResidencyIdx, list[Use]]:
    uses: dict[ResidencyIdx, list[Use]] = {}
    for use in (*case.task_uses, *case.transfer_uses):
        uses.setdefault(use.residency, []).append(use)
    return uses


def _why_not_in_place(
    case: Case, old: ResidencyIdx, new: ResidencyIdx, placement: Placement, uses: list[Use]
) -> Iterator[str]:
    before, after = case.plan.residencies[old], case.plan.residencies[new]
    task = case.problem.tasks[placement.task]
    who = case.task(task.index)
    if before.offset != after.offset:
        yield f"in place at offset {after.offset} B, expected {before.offset} B"
    first, last = _shared_cycles(before, after)
    if first < placement.start or last > placement.end:
        yield f"expected only while {who} runs, in [{placement.start}, {placement.end})"
    for use in uses:
        own = use.kind == "task" and use.number == task.index
        if own and use.slice != before.slice:
            yield f"but {who} also reads {case.slice(use.slice)} there"
        elif not own and use.end > placement.start:
            yield (
                f"but {case.user(use)} reads the old value until cycle {use.end} > "
                f"{placement.start}, the start of {who}"
            )


def _shared_cycles(one: Residency, other: Residency) -> tuple[int, int]:
    return max(one.start, other.start), min(one.end, other.end)


def _violation(
    rule: str, case: Case, one: ResidencyIdx, other: ResidencyIdx, detail: str
) -> Violation:
    a, b = case.plan.residencies[one], case.plan.residencies[other]
    low, high = max(a.offset, b.offset), min(a.offset + a.bytes, b.offset + b.bytes)
    first, last = _shared_cycles(a, b)
    what = f"share {high - low} B [{low}, {high})"
    if case.home[one] is not None:
        what = "share elements of a tensor"
    names = case.residency(one), case.residency(other)
    message = f"{names[0]} and {names[1]} {what} during cycles [{first}, {last}){detail}"
    return Violation(rule, names, message)
