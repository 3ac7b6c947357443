"""Why a plan is as slow as it is: all analyses of it, and the same in words."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from spmilp import quantities
from spmilp.explaining.chain import (
    AnalysedPlan,
    Binding,
    Cause,
    Chain,
    ChainStep,
    Holder,
    Part,
    causes_of,
    critical_chain,
    cycles_by_binding,
    steps_of,
)
from spmilp.explaining.text import Explanation, list_of, network_name, paragraph, section
from spmilp.explaining.usage import (
    CoreTime,
    Excess,
    Idle,
    Space,
    TensorTraffic,
    excess_of,
    in_place_pairs,
    spaces_of,
    times_of_cores,
    traffic_of,
)
from spmilp.machine.machine import Core, Engine, Machine, Memory
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, ResidencyIdx


class Analysis(NamedTuple):
    """Why a plan takes what it takes.

    Parameters
    ----------
    causes
        For each activity, what it waited for, the binding cause first.
    in_place
        ``(operand, result)`` residencies that share their bytes.
    """

    subject: AnalysedPlan
    causes: tuple[tuple[Cause, ...], ...]
    chain: Chain
    steps: tuple[ChainStep, ...]
    cores: tuple[CoreTime, ...]
    spaces: tuple[Space, ...]
    in_place: tuple[tuple[ResidencyIdx, ResidencyIdx], ...]
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
        steps=steps_of(subject, chain),
        cores=times_of_cores(subject, causes),
        spaces=spaces_of(subject),
        in_place=in_place_pairs(subject),
        traffic=traffic_of(subject),
        excess=excess_of(subject),
    )


def of_chain(chain: Chain) -> str:
    """Say what the makespan is spent on."""
    cycles = chain.cycles()
    total = sum(cycles.values())
    if not total:
        return "There is nothing to run."
    spent = ", ".join(
        f"{quantities.percent(cycles[part] / total)} {part.words}"
        for part in sorted(Part, key=lambda part: -cycles[part])
        if cycles[part]
    )
    links = "1 task" if len(chain.links) == 1 else f"{len(chain.links):,} tasks and transfers"
    return f"The critical chain of {links} takes the makespan: {spent}."


MOST_BINDINGS = 6
"""Lines of what binds the plan; the rest is added up."""

MOST_EXCESS = 5
"""Lines of DRAM traffic beyond the compulsory; the rest is added up."""


def why_slow(analysis: Analysis) -> Explanation:
    """Explain the makespan of a plan."""
    subject = analysis.subject
    problem, plan = subject.problem, subject.plan
    parts = [
        _title(analysis),
        section("The critical chain", _chain(analysis)),
        section("What binds it", _bindings(problem.machine, analysis.steps, plan.claim.makespan)),
        section("Idle cores", _idle(problem.machine, analysis.cores, plan.claim.makespan)),
    ]
    if analysis.excess:
        parts.append(section("DRAM traffic beyond what is compulsory", _beyond(analysis)))
    return Explanation(text="\n\n".join(parts), data=_data(analysis))


def _name(machine: Machine, holder: Holder, index: int) -> str:
    """Return the name of a resource; empty where there is none."""
    if holder is Holder.LINK:
        link = machine.links[index]
        return f"{link.source} → {link.target}"
    parts: Mapping[Holder, Sequence[Core | Engine | Memory]] = {
        Holder.CORE: machine.cores,
        Holder.ENGINE: machine.engines,
        Holder.MEMORY: machine.memories,
    }
    return parts[holder][index].name if holder in parts else ""


def said_of(machine: Machine, binding: Binding) -> str:
    """Say which resource holds the chain up, and how."""
    holder, index = binding.holder, binding.index
    name = _name(machine, holder, index)
    fields = {"name": name if name.startswith(holder.words) else f"{holder.words} {name}"}
    if holder is Holder.LINK:
        fields["rate"] = f"{machine.links[index].rate} B/cycle"
    if holder is Holder.ENGINE:
        fields["rate"] = f"{machine.engines[index].rate} B/cycle"
        fields["channels"] = f"it has {machine.engines[index].channels}"
    if holder is Holder.MEMORY:
        usable = machine.memories[index].usable
        fields["size"] = "no limit" if usable is None else f"{quantities.size(usable)} usable"
    return binding.reason.words.format(**fields)


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
        said = part.words
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
    found = cycles_by_binding(steps)
    for binding, cycles in found[:MOST_BINDINGS]:
        yield from _share(cycles, makespan, said_of(machine, binding))
    rest = sum(cycles for _, cycles in found[MOST_BINDINGS:])
    if rest:
        count = len(found) - MOST_BINDINGS
        yield from _share(rest, makespan, f"{quantities.count(count, 'other cause')}, each less")


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
            yield from _share(waits[idle], total, idle.words)
    idlest = min(cores, key=lambda core: (core.busy, core.core))
    if len(cores) > 1:
        mine = idlest.idle()
        most = max(Idle, key=mine.__getitem__)
        waiting = f"with {most.words}" if most is Idle.DONE else f"waiting {most.words}"
        yield from paragraph(
            f"Most idle is {machine.cores[idlest.core].name}, "
            f"{makespan - idlest.busy:,} of {makespan:,} cycles, {mine[most]:,} of them "
            f"{waiting}."
        )


def _beyond(analysis: Analysis) -> Iterator[str]:
    """Yield the bytes beyond the compulsory ones by what they are moved for."""
    least = sum(row.compulsory for row in analysis.traffic)
    yield from paragraph(
        f"{sum(row.bytes for row in analysis.excess):,} bytes beyond the {least:,} that no plan "
        "avoids:"
    )
    for row in analysis.excess[:MOST_EXCESS]:
        who = f" ({row.operator})" if row.operator else ""
        yield from paragraph(f"{row.data} {row.kind.words}{who}", f"{row.bytes:>11,}  ")
    rest = analysis.excess[MOST_EXCESS:]
    if rest:
        said = f"{quantities.count(len(rest), 'other')}, none more"
        yield from paragraph(said, f"{sum(row.bytes for row in rest):>11,}  ")


def _data(analysis: Analysis) -> dict[str, object]:
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
        "bindings": [
            {"kind": str(binding.holder), "name": _name(machine, binding.holder, binding.index)}
            | {"reason": str(binding.reason), "cycles": cycles}
            for binding, cycles in cycles_by_binding(analysis.steps)
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
