"""Why a plan is as slow as it is: all analyses of it, and the same in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spmilp import quantities
from spmilp.explaining.chain import (
    Binding,
    Cause,
    Chain,
    ChainStep,
    Holder,
    Reason,
    Wait,
    causes_of,
    critical_chain,
    cycles_by_binding,
    steps_of,
)
from spmilp.explaining.subject import AnalysedPlan, Part
from spmilp.explaining.text import Explanation, list_of, network_name, paragraph, section
from spmilp.explaining.usage import (
    Beyond,
    CoreTime,
    Excess,
    Idle,
    Phase,
    Space,
    TensorTraffic,
    double_buffered,
    excess_of,
    in_place_pairs,
    phases_of,
    spaces_of,
    times_of_cores,
    traffic_of,
)
from spmilp.machine.machine import Core, Engine, Machine, Memory
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Why a plan takes what it takes.

    Parameters
    ----------
    causes
        For each activity, what it waited for, the binding cause first.
    in_place
        ``(operand, result)`` residencies that share their bytes.
    double_buffered
        Residencies that are filled while a task works on another part of their tensor.
    """

    subject: AnalysedPlan
    causes: tuple[tuple[Cause, ...], ...]
    chain: Chain
    phases: tuple[Phase, ...]
    cores: tuple[CoreTime, ...]
    spaces: tuple[Space, ...]
    in_place: tuple[tuple[ResidencyIdx, ResidencyIdx], ...]
    double_buffered: tuple[ResidencyIdx, ...]
    traffic: tuple[TensorTraffic, ...]
    excess: tuple[Excess, ...]


def analyse(problem: Problem, plan: Plan) -> Analysis:
    """Analyse a plan that the checker has accepted."""
    subject = AnalysedPlan(problem=problem, plan=plan)
    causes = causes_of(subject)
    chain = critical_chain(subject, causes)
    return Analysis(
        subject=subject,
        causes=causes,
        chain=chain,
        phases=phases_of(subject, chain),
        cores=times_of_cores(subject, causes),
        spaces=spaces_of(subject),
        in_place=in_place_pairs(subject),
        double_buffered=double_buffered(subject),
        traffic=traffic_of(subject),
        excess=excess_of(subject),
    )


PARTS: dict[Part, str] = {
    Part.COMPUTE: "computing",
    Part.LOAD: "loading from DRAM",
    Part.STORE: "storing to DRAM",
    Part.MOVE: "moving data on chip",
    Part.UNUSED: "unused",
}

WAITS: dict[Wait, str] = {
    Wait.CORE: "its core ran {activity}",
    Wait.WRITER: "{activity} had not computed {residency}",
    Wait.ARRIVAL: "{residency} was on its way by {activity}",
    Wait.STORED: "{residency} was not in DRAM before {activity}",
    Wait.CHANNEL: "all channels of its DMA engine were busy, until {activity} ended",
    Wait.LINK: "link {link} was taken, until {activity} ended",
    Wait.ROOM: "{activity} used the bytes it writes to, those of {residency}",
    Wait.ORDER: "it may only run after {activity}",
}
"""Why an activity did not start earlier; the fields are names."""

IDLES: dict[Idle, str] = {
    Idle.LOAD: "for a load from DRAM",
    Idle.STORE: "for a store before its reload",
    Idle.MOVE: "for a move on chip",
    Idle.WRITER: "for tasks on other cores",
    Idle.CHANNEL: "for a DMA channel",
    Idle.LINK: "for a link",
    Idle.ROOM: "for room in a memory",
    Idle.ORDER: "for tasks whose turn is before",
    Idle.UNUSED: "for nothing",
    Idle.DONE: "no task left",
}

BEYOND: dict[Beyond, str] = {
    Beyond.SPILL: "stored and loaded back",
    Beyond.STORE: "stored, and not loaded again",
    Beyond.RELOAD: "loaded again where it has been",
    Beyond.COPY: "loaded again, into another memory",
    Beyond.OVERLAP: "loaded twice where slices overlap",
}
"""Why bytes beyond the compulsory ones are moved."""


def of_chain(chain: Chain) -> str:
    """Say what the makespan is spent on."""
    cycles = chain.cycles()
    total = sum(cycles.values())
    if not total:
        return "There is nothing to run."
    shares = sorted(
        ((-cycles[part], part) for part in Part if cycles[part]), key=lambda each: each[0]
    )
    spent = ", ".join(
        f"{quantities.percent(-taken / total)} {PARTS[part]}" for taken, part in shares
    )
    links = "1 task" if len(chain.links) == 1 else f"{len(chain.links):,} tasks and transfers"
    return f"The critical chain of {links} takes the makespan: {spent}."


def of_phase(phase: Phase, machine: Machine) -> str:
    """Say what bounds a phase, and how busy cores, engines and links are in it."""
    share = phase.chain[phase.part] / (phase.end - phase.start)
    said = [f"{quantities.percent(share)} of the critical chain is {PARTS[phase.part]}"]
    said.append(f"cores {quantities.percent(phase.cores)} busy")
    if phase.core is not None:
        name = machine.cores[phase.core].name
        said.append(f"most {name}, {quantities.percent(phase.core_use)}")
    if phase.engine is not None:
        name = machine.engines[phase.engine].name
        said.append(f"busiest DMA engine {name}, {quantities.percent(phase.engine_use)}")
    if phase.link is not None:
        link = machine.links[phase.link]
        name = f"{link.source} → {link.target}"
        said.append(f"busiest link {name}, {quantities.percent(phase.link_use)}")
    return "; ".join(said)


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
    parts: dict[Holder, Sequence[Core | Engine | Memory]] = {
        Holder.CORE: machine.cores,
        Holder.ENGINE: machine.engines,
        Holder.MEMORY: machine.memories,
    }
    return parts[binding.holder][binding.index].name if binding.holder in parts else ""


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


def _bindings(machine: Machine, steps: Sequence[ChainStep], makespan: Cycles) -> Iterator[str]:
    found = cycles_by_binding(steps, 0, makespan)
    for binding, cycles in found[:MOST_BINDINGS]:
        yield from _share(cycles, makespan, _said(machine, binding))
    rest = sum(cycles for _, cycles in found[MOST_BINDINGS:])
    if rest:
        count = len(found) - MOST_BINDINGS
        yield from _share(rest, makespan, f"{quantities.count(count, 'other cause')}, each less")


def _phases(analysis: Analysis, steps: Sequence[ChainStep]) -> Iterator[str]:
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


def _data(analysis: Analysis, steps: Sequence[ChainStep]) -> dict[str, object]:
    subject = analysis.subject
    machine, claim = subject.problem.machine, subject.plan.claim

    def bindings(start: Cycles, end: Cycles) -> list[dict[str, object]]:
        return [
            {"kind": str(binding.holder), "name": name_of(machine, binding)}
            | {"reason": str(binding.reason), "cycles": cycles}
            for binding, cycles in cycles_by_binding(steps, start, end)
        ]

    return {
        "problem": subject.problem.name,
        "machine": machine.name,
        "status": "slow",
        "makespan": claim.makespan,
        "chain": {
            "activities": len(analysis.chain.links),
            "cycles": {str(part): cycles for part, cycles in analysis.chain.cycles().items()},
        },
        "bindings": bindings(0, claim.makespan),
        "phases": [
            {"start": phase.start, "end": phase.end, "part": str(phase.part)}
            | {"cores_busy": phase.cores, "bindings": bindings(phase.start, phase.end)}
            for phase in analysis.phases
        ],
        "cores": [
            {"core": machine.cores[core.core].name, "tasks": core.tasks, "busy": core.busy}
            | {"idle": {str(idle): cycles for idle, cycles in core.idle().items()}}
            for core in analysis.cores
        ],
        "excess": [
            {"kind": row.kind.value, "data": row.data.value, "operator": row.operator}
            | {"bytes": row.bytes}
            for row in analysis.excess
        ],
    }
