"""What an analysis finds, in words; every view of it takes them from here."""

from spmilp import quantities
from spmilp.analysis.causes import Wait
from spmilp.analysis.chain import Chain
from spmilp.analysis.idle import Idle
from spmilp.analysis.phases import Phase
from spmilp.analysis.subject import Part
from spmilp.analysis.traffic import Beyond
from spmilp.machine.machine import Machine

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
