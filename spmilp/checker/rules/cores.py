"""Rules 2 and 3: a core runs one task at a time; a task waits for those that it follows."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Placement


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
