"""Rule 4: every slice that a task reads is valid where the core can read it, for the whole run."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case, Use
from spmilp.checker.violation import Violation
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Residency
from spmilp.units import CoreIdx


def operands_served(case: Case) -> Iterator[Violation]:
    """The named residency holds the slice, is readable by the core and valid from start to end."""
    for use in case.task_uses:
        stay = case.plan.residencies[use.residency]
        core = case.plan.placements[use.number].core
        for defect in _defects(case, use, stay, core):
            who, what = case.task(use.number), case.residency(use.residency)
            yield Violation(
                "operands_served",
                (who, what),
                f"{who} reads {case.slice(use.slice)} from {what}, {defect}",
            )


def _defects(case: Case, use: Use, stay: Residency, core: CoreIdx) -> Iterator[str]:
    if not case.holds(use.residency, use.slice):
        held = "scratch" if stay.slice is None else case.slice(stay.slice)
        yield f"which holds {held}"
    valid = case.valid_from[use.residency]
    if valid > use.start:
        yield f"which is valid from cycle {valid} > {use.start}, the task's start"
    if stay.end < use.end and not case.is_lost(use):
        yield f"which ends at cycle {stay.end} < {use.end}, the task's end"
    reason = _why_not_readable(case, stay, core)
    if reason:
        yield reason


def _why_not_readable(case: Case, stay: Residency, core: CoreIdx) -> str:
    """Return why a core cannot read in a memory; empty when it can."""
    local = case.machine.cores[core].memory
    if stay.memory == local:
        return ""
    memory, name = case.machine.memories[stay.memory], case.core(core)
    remote = case.machine.remote
    if remote is None:
        return f"but {name} reads only in its own memory {case.memory(local)}"
    if memory.kind is not MemoryKind.SPM:
        return f"but {name} reads remotely in scratchpads only; {memory.name} is {memory.kind}"
    route = case.routes.between(stay.memory, local)
    if route is None:
        return f"but no route leads from {memory.name} to {case.memory(local)}"
    if remote.longest_route is not None and len(route.links) > remote.longest_route:
        return (
            f"but from {memory.name} to {case.memory(local)} there are {len(route.links)} links "
            f"> {remote.longest_route}"
        )
    return ""
