"""Rules 1 to 3: tasks run once, on able cores, for exactly their cycles, one at a time, in order.

That a task runs once follows from the structure: the plan has one placement for each.
"""

from collections.abc import Iterator
from math import ceil

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Placement
from spmilp.units import Cycles


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
