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
