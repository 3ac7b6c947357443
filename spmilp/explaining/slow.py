"""Why a plan is as slow as it is, in words."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from spmilp import quantities
from spmilp.commands.build import TooManyEventsError
from spmilp.explaining.chain import (
    AnalysedPlan,
    Binding,
    CoreTime,
    Holder,
    Part,
    Reason,
    cycles_by_binding,
    cycles_by_part,
    steps_of,
    times_of_cores,
)
from spmilp.explaining.streams import network_data, of_networks
from spmilp.explaining.text import Explanation, list_of, network_name, paragraph, section
from spmilp.explaining.usage import Excess, excess_of
from spmilp.machine.machine import Core, Engine, Machine, Memory
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.problem.objective import Quantity
from spmilp.simulator.simulate import Simulations, simulate
from spmilp.units import Bytes, Cycles

MOST_BINDINGS = 6
"""Lines of what binds the plan; the rest is added up."""

MOST_ROWS = 5
"""Lines of DRAM traffic beyond the compulsory, and of transfers that share links."""


def why_slow(subject: AnalysedPlan) -> Explanation:
    """Explain the makespan of a plan that the checker has accepted."""
    machine, makespan = subject.problem.machine, subject.plan.claim.makespan
    bindings = cycles_by_binding(steps_of(subject, subject.chain))
    cores, excess = times_of_cores(subject), excess_of(subject)
    found = None
    if subject.plan.stream is None:
        with suppress(TooManyEventsError):
            found = simulate(subject.problem, subject.plan)
    parts = [
        _title(subject),
        *of_networks(subject.problem, subject.plan),
        section("The critical chain", _chain(subject)),
        section("What binds it", _bindings(machine, bindings, makespan)),
        section("Idle cores", _idle(machine, cores, makespan)),
    ]
    if excess:
        least = compulsory_dram_traffic(subject.problem)
        parts.append(section("DRAM traffic beyond what is compulsory", _beyond(excess, least)))
    if found is not None:
        parts.append(section("As hardware runs it", _simulated(found)))
    data = {
        "problem": subject.problem.name,
        "machine": machine.name,
        "status": "slow",
        "makespan": makespan,
        "networks": network_data(subject.problem, subject.plan),
        "chain": {
            "activities": len(subject.chain),
            "cycles": {str(part): n for part, n in cycles_by_part(subject.chain).items()},
        },
        "bindings": [
            {"kind": str(binding.holder), "name": _name(machine, binding.holder, binding.index)}
            | {"reason": str(binding.reason), "cycles": cycles}
            for binding, cycles in bindings
        ],
        "cores": [
            {"core": machine.cores[core.core].name, "tasks": core.tasks, "busy": core.busy}
            | {"idle": {str(reason): cycles for reason, cycles in core.by_reason().items()}}
            for core in cores
        ],
        "excess": [
            {"kind": row.kind.value, "data": row.data.value, "operator": row.operator}
            | {"bytes": row.bytes}
            for row in excess
        ],
        "simulated": found and found.exact.makespan,
        "delays": found and found.delays(),
    }
    return Explanation(text="\n\n".join(parts), data=data)


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
    if not name.startswith(holder.words):
        name = f"{holder.words} {name}"
    if holder is Holder.LINK:
        name += f" ({machine.links[index].rate} B/cycle)"
    elif holder is Holder.ENGINE:
        engine = machine.engines[index]
        channels = quantities.count(engine.channels, "channel")
        is_full = binding.reason is Reason.CHANNELS
        name += f" ({channels})" if is_full else f" ({engine.rate} B/cycle)"
    elif holder is Holder.MEMORY:
        usable = machine.memories[index].usable
        name += "" if usable is None else f" ({quantities.size(usable)} usable)"
    return binding.reason.words.format(name=name)


def _title(subject: AnalysedPlan) -> str:
    claim, machine = subject.plan.claim, subject.problem.machine
    cores = quantities.count(len(machine.cores), "core")
    said = f"{network_name(subject.problem)} on {machine.name} ({cores})"
    quantity, bound = subject.problem.objective.first, claim.bound
    lines = [f"{said}: why it takes {claim.makespan:,} cycles"]
    if quantity is Quantity.MAKESPAN:
        lines.append(f"(no plan with these tiles takes less than {bound:,}: {claim.bound_source})")
    return "\n".join(lines)


def _chain(subject: AnalysedPlan) -> Iterator[str]:
    """Yield a sentence for each part of the chain: cycles, and where they are spent."""
    machine, links = subject.problem.machine, subject.chain
    cycles, makespan = cycles_by_part(links), subject.plan.claim.makespan
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
        names = list_of(sorted(where, key=lambda name: (-where[name], name)))
        said = part.words
        if part is Part.COMPUTE:
            said += f": {quantities.count(len(mine), 'task')} on {names}"
        elif part is not Part.UNUSED:
            said += f": {quantities.count(len(mine), 'transfer')} by {names}"
        yield from _share(cycles[part], makespan, said)


def _share(cycles: Cycles, makespan: Cycles, said: str) -> list[str]:
    """Return a line of cycles, their share, and what they are."""
    return paragraph(said, f"{cycles:>11,} {quantities.percent(cycles / makespan):>6}  ")


def _bindings(
    machine: Machine, found: Sequence[tuple[Binding, Cycles]], makespan: Cycles
) -> Iterator[str]:
    for binding, cycles in found[:MOST_BINDINGS]:
        yield from _share(cycles, makespan, said_of(machine, binding))
    rest = sum(cycles for _, cycles in found[MOST_BINDINGS:])
    if rest:
        count = len(found) - MOST_BINDINGS
        yield from _share(rest, makespan, f"{quantities.count(count, 'other cause')}, each less")


def _idle(machine: Machine, cores: Sequence[CoreTime], makespan: Cycles) -> Iterator[str]:
    """Yield what holds up all cores together, and the idlest one."""
    total = makespan * len(cores)
    if not total:
        return
    busy = sum(core.busy for core in cores)
    working = sum(core.tasks > 0 for core in cores)
    yield from paragraph(
        f"{working} of {quantities.count(len(cores), 'core')} work; together they are busy "
        f"{quantities.percent(busy / total)} of the time. They are idle while"
    )
    idle: Counter[Reason] = Counter()
    for core in cores:
        idle.update(core.by_reason())
    for reason, cycles in idle.most_common():
        if cycles:
            yield from _share(cycles, total, reason.of_any())
    idlest = min(cores, key=lambda core: (core.busy, core.core))
    if len(cores) > 1:
        mine = idlest.by_reason()
        most = max(Reason, key=mine.__getitem__)
        yield from paragraph(
            f"Most idle is {machine.cores[idlest.core].name}, {makespan - idlest.busy:,} of "
            f"{makespan:,} cycles; in {mine[most]:,} of them {most.of_any()}."
        )


def _simulated(found: Simulations) -> Iterator[str]:
    """Yield when all ends where links are shared, and which transfers of the chain lose by that."""
    delays = found.delays()[:MOST_ROWS]
    yield from paragraph(
        f"Command lists without times, on links that are shared fairly, end at cycle "
        f"{round(found.exact.makespan):,}, {found.ratio:.3f} of the makespan"
        f"{'. On the chain to the end take most cycles more than planned:' if delays else '.'}"
    )
    for row in delays:
        others = quantities.count(row["others"], "other")
        said = (
            f"{row['what']} ({row['place']}), begun {round(row['late']):,} late, on {row['link']}"
        )
        yield from paragraph(f"{said} with {others}", f"{row['longer']:>11,.0f}  ")


def _beyond(excess: Sequence[Excess], least: Bytes) -> Iterator[str]:
    """Yield the bytes beyond the compulsory ones by what they are moved for."""
    yield from paragraph(
        f"{sum(row.bytes for row in excess):,} bytes beyond the {least:,} that no plan avoids:"
    )
    for row in excess[:MOST_ROWS]:
        who = f" ({row.operator})" if row.operator else ""
        yield from paragraph(f"{row.data} {row.kind.words}{who}", f"{row.bytes:>11,}  ")
    rest = excess[MOST_ROWS:]
    if rest:
        said = f"{quantities.count(len(rest), 'other')}, none more"
        yield from paragraph(said, f"{sum(row.bytes for row in rest):>11,}  ")
