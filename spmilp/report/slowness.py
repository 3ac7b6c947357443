"""Why a plan is as slow as it is: its critical chain, what binds it, and idle cores, in words."""

from collections import Counter
from collections.abc import Iterator, Sequence

from spmilp import quantities
from spmilp.analysis.analyse import Analysis
from spmilp.analysis.binding import (
    Binding,
    Holder,
    Reason,
    Step,
    cycles_by_binding,
    steps_of,
)
from spmilp.analysis.idle import CoreTime, Idle
from spmilp.analysis.phases import Phase
from spmilp.analysis.subject import Part
from spmilp.analysis.traffic import Excess
from spmilp.machine.machine import Machine
from spmilp.problem.objective import Quantity
from spmilp.report.explanation import Explanation, list_of, paragraph, section
from spmilp.report.summary import network_name
from spmilp.report.words import BEYOND, IDLES, PARTS
from spmilp.units import Cycles

MOST_BINDINGS = 6
"""Lines of what binds the plan; the rest is added up."""

MOST_PHASES = 6
MOST_IN_A_PHASE = 2

MOST_EXCESS = 5
"""Lines of DRAM traffic beyond the compulsory; the rest is added up."""

REASONS: dict[Reason, str] = {
    Reason.BUSY: "{name} computes one task after another",
    Reason.WRITER: "{name} computes operands that others wait for",
    Reason.ORDER: "{name} runs tasks that must come before others",
    Reason.RATE: "bytes wait for the rate of {name}, {rate}",
    Reason.SETUP: "transfers of {name} start: set-up and latency",
    Reason.CHANNELS: "{name} has no channel free: {channels}",
    Reason.TAKEN: "{name}, {rate}, is taken by other transfers",
    Reason.ROOM: "{name} has no room: bytes are in use, {size}",
    Reason.PINNED: "a task is pinned not to start any earlier",
    Reason.UNUSED: "nothing is waited for: the plan could go on",
}
"""How a resource holds the critical chain up."""


def why_slow(analysis: Analysis) -> Explanation:
    """Explain the makespan of a plan."""
    subject = analysis.subject
    problem, plan = subject.problem, subject.plan
    steps = steps_of(subject, analysis.chain)
    parts = [
        _title(analysis),
        section("The critical chain", _chain(analysis)),
        section("What binds it", _bindings(problem.machine, steps, plan.claim.makespan)),
        section("Phases", _phases(analysis, steps)),
        section("Idle cores", _idle(problem.machine, analysis.cores, plan.claim.makespan)),
    ]
    if analysis.excess:
        parts.append(section("DRAM traffic beyond what is compulsory", _beyond(analysis)))
    return Explanation(text="\n\n".join(parts), data=_data(analysis, steps))


KINDS = {
    Holder.CORE: "core",
    Holder.ENGINE: "DMA engine",
    Holder.LINK: "link",
    Holder.MEMORY: "memory",
}


def name_of(machine: Machine, binding: Binding) -> str:
    """Return the name of the resource that binds; empty where none does."""
    if binding.holder is Holder.LINK:
        link = machine.links[binding.index]
        return f"{link.source} → {link.target}"
    if binding.holder is Holder.CORE:
        return machine.cores[binding.index].name
    if binding.holder is Holder.ENGINE:
        return machine.engines[binding.index].name
    return machine.memories[binding.index].name if binding.holder is Holder.MEMORY else ""


def _said(machine: Machine, binding: Binding) -> str:
    kind, name = KINDS.get(binding.holder, ""), name_of(machine, binding)
    fields = {"name": name if name.startswith(kind) else f"{kind} {name}"}
    if binding.holder is Holder.LINK:
        fields["rate"] = f"{machine.links[binding.index].rate} B/cycle"
    if binding.holder is Holder.ENGINE:
        engine = machine.engines[binding.index]
        fields["rate"] = f"{engine.rate} B/cycle"
        fields["channels"] = f"it has {engine.channels}"
    if binding.holder is Holder.MEMORY:
        usable = machine.memories[binding.index].usable
        fields["size"] = "no limit" if usable is None else f"{quantities.size(usable)} usable"
    return REASONS[binding.reason].format(**fields)


def _title(analysis: Analysis) -> str:
    subject = analysis.subject
    claim, machine = subject.plan.claim, subject.problem.machine
    cores = quantities.count(len(machine.cores), "core")
    said = f"{network_name(subject.problem)} on {machine.name} ({cores})"
    quantity, bound = subject.problem.objective.first, claim.bound
    lines = [f"{said}: why it takes {claim.makespan:,} cycles"]
    if quantity is Quantity.MAKESPAN:
        lines.append(f"(no plan with these tiles takes less than {bound:,}: {claim.bound_source})")
    return "\n".join(lines)


def _chain(analysis: Analysis) -> Iterator[str]:
    """Yield a sentence for each part of the chain: cycles, and where they are spent."""
    subject, machine = analysis.subject, analysis.subject.problem.machine
    links = analysis.chain.links
    cycles, makespan = analysis.chain.cycles(), subject.plan.claim.makespan
    if not links:
        yield "There is nothing to run."
        return
    yield from paragraph(
        f"{len(links):,} tasks and transfers, each of which had to wait for the one before it, "
        "take all cycles:"
    )
    for part in sorted(Part, key=lambda each: -cycles[each]):
        if not cycles[part]:
            continue
        mine = [link for link in links if link.part is part]
        where: Counter[str] = Counter()
        for link in mine:
            move = subject.transfer(link.activity)
            if move is None:
                name = machine.cores[subject.plan.placements[link.activity].core].name
            else:
                name = machine.engines[move.engine].name
            where[name] += link.end - link.start
        said = PARTS[part]
        if part is Part.COMPUTE:
            said += f": {quantities.count(len(mine), 'task')} on {list_of(_most(where))}"
        elif part is not Part.UNUSED:
            said += f": {quantities.count(len(mine), 'transfer')} by {list_of(_most(where))}"
        yield from _share(cycles[part], makespan, said)


def _most(counted: Counter[str]) -> list[str]:
    return sorted(counted, key=lambda name: (-counted[name], name))


def _share(cycles: Cycles, makespan: Cycles, said: str) -> list[str]:
    """Return a line of cycles, their share, and what they are."""
    return paragraph(said, f"{cycles:>11,} {quantities.percent(cycles / makespan):>6}  ")


def _bindings(machine: Machine, steps: Sequence[Step], makespan: Cycles) -> Iterator[str]:
    found = cycles_by_binding(steps, 0, makespan)
    for binding, cycles in found[:MOST_BINDINGS]:
        yield from _share(cycles, makespan, _said(machine, binding))
    rest = sum(cycles for _, cycles in found[MOST_BINDINGS:])
    if rest:
        count = len(found) - MOST_BINDINGS
        yield from _share(rest, makespan, f"{quantities.count(count, 'other cause')}, each less")


def _phases(analysis: Analysis, steps: Sequence[Step]) -> Iterator[str]:
    machine = analysis.subject.problem.machine
    longest = sorted(analysis.phases, key=lambda each: (each.start - each.end, each.start))
    shown = longest[:MOST_PHASES]
    for phase in analysis.phases:
        if phase not in shown:
            continue
        length = phase.end - phase.start
        yield from paragraph(
            f"cycles {phase.start:,} to {phase.end:,}: mostly {PARTS[phase.part]}, cores "
            f"{quantities.percent(phase.cores)} busy"
        )
        for binding, cycles in cycles_by_binding(steps, phase.start, phase.end)[:MOST_IN_A_PHASE]:
            yield from _share(cycles, length, _said(machine, binding))
    if len(longest) > MOST_PHASES:
        yield f"and {quantities.count(len(longest) - MOST_PHASES, 'other phase')}, none longer"


def _idle(machine: Machine, cores: Sequence[CoreTime], makespan: Cycles) -> Iterator[str]:
    """Yield what idle cycles of cores are attributed to, all cores together and the idlest one."""
    total = makespan * len(cores)
    if not total:
        return
    waits: Counter[Idle] = Counter()
    for core in cores:
        waits.update(core.idle())
    busy = sum(core.busy for core in cores)
    working = sum(core.tasks > 0 for core in cores)
    yield from paragraph(
        f"{working} of {quantities.count(len(cores), 'core')} work; together they are busy "
        f"{quantities.percent(busy / total)} of the time. They wait"
    )
    for idle in sorted(Idle, key=lambda each: -waits[each]):
        if waits[idle]:
            yield from _share(waits[idle], total, IDLES[idle])
    idlest = min(cores, key=lambda core: (core.busy, core.core))
    if len(cores) > 1:
        mine = idlest.idle()
        most = max(Idle, key=lambda each: mine[each])
        yield from paragraph(
            f"Most idle is {machine.cores[idlest.core].name}, "
            f"{makespan - idlest.busy:,} of {makespan:,} cycles, {mine[most]:,} of them "
            f"{_as_wait(most)}."
        )


def _beyond(analysis: Analysis) -> Iterator[str]:
    """Yield the bytes beyond the compulsory ones by what they are moved for."""
    least = sum(row.compulsory for row in analysis.traffic)
    yield from paragraph(
        f"{sum(row.bytes for row in analysis.excess):,} bytes beyond the {least:,} that no plan "
        "avoids:"
    )
    for row in analysis.excess[:MOST_EXCESS]:
        yield from paragraph(_excess(row), f"{row.bytes:>11,}  ")
    rest = analysis.excess[MOST_EXCESS:]
    if rest:
        said = f"{quantities.count(len(rest), 'other')}, none more"
        yield from paragraph(said, f"{sum(row.bytes for row in rest):>11,}  ")


def _excess(row: Excess) -> str:
    who = f" ({row.operator})" if row.operator else ""
    return f"{row.data} {BEYOND[row.kind]}{who}"


def _as_wait(idle: Idle) -> str:
    return "with no task left" if idle is Idle.DONE else f"waiting {IDLES[idle]}"


def _data(analysis: Analysis, steps: Sequence[Step]) -> dict[str, object]:
    subject = analysis.subject
    machine, claim = subject.problem.machine, subject.plan.claim
    return {
        "problem": subject.problem.name,
        "machine": machine.name,
        "status": "slow",
        "makespan": claim.makespan,
        "chain": {
            "activities": len(analysis.chain.links),
            "cycles": {str(part): cycles for part, cycles in analysis.chain.cycles().items()},
        },
        "bindings": _binding_rows(machine, steps, 0, claim.makespan),
        "phases": [_phase_row(machine, steps, phase) for phase in analysis.phases],
        "cores": [
            {
                "core": machine.cores[core.core].name,
                "tasks": core.tasks,
                "busy": core.busy,
                "idle": {str(idle): cycles for idle, cycles in core.idle().items()},
            }
            for core in analysis.cores
        ],
        "excess": [
            {"kind": row.kind.value, "data": row.data.value, "operator": row.operator}
            | {"bytes": row.bytes}
            for row in analysis.excess
        ],
    }


def _phase_row(machine: Machine, steps: Sequence[Step], phase: Phase) -> dict[str, object]:
    return {
        "start": phase.start,
        "end": phase.end,
        "part": str(phase.part),
        "cores_busy": phase.cores,
        "bindings": _binding_rows(machine, steps, phase.start, phase.end),
    }


def _binding_rows(
    machine: Machine, steps: Sequence[Step], start: Cycles, end: Cycles
) -> list[dict[str, object]]:
    return [
        {
            "kind": str(binding.holder),
            "name": name_of(machine, binding),
            "reason": str(binding.reason),
            "cycles": cycles,
        }
        for binding, cycles in cycles_by_binding(steps, start, end)
    ]
