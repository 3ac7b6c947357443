"""The figures of a plan: as plain data, and as rows for the command line and a notebook alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from spmilp import quantities
from spmilp.explaining.text import network_name
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.plan.measures import claimed, compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, Femtojoules

UNITS = {
    Quantity.MAKESPAN: "cycles",
    Quantity.DRAM_TRAFFIC: "B",
    Quantity.ENERGY: "fJ",
    Quantity.PEAK_SPM: "B",
}

Row: TypeAlias = tuple[str, str, str]
"""A figure's name, its value with unit, and what it is to be compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreUse:
    """Use of one core: ``busy`` cycles, in which it runs a task, and their share, 0 to 1."""

    core: str
    tasks: int
    busy: Cycles
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Use of one on-chip memory: bytes from 0 to the end of its highest residency, and its size."""

    memory: str
    kind: MemoryKind
    peak: Bytes
    capacity: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one plan.

    Parameters
    ----------
    quantity
        What ``objective`` and ``bound`` measure; each in its own unit.
    gap
        ``(objective - bound) / objective``.
    makespan_seconds
        The makespan in seconds; ``None`` when the machine states no frequency.
    compulsory_dram_traffic
        Bytes to and from DRAM that no plan can avoid.
    """

    network: str
    machine: str
    quantity: Quantity
    objective: int
    bound: int
    bound_source: str
    gap: float
    makespan: Cycles
    makespan_seconds: float | None
    dram_traffic: Bytes
    compulsory_dram_traffic: Bytes
    energy: Femtojoules
    peak_spm: Bytes
    tasks: int
    transfers: int
    cores: tuple[CoreUse, ...]
    memories: tuple[MemoryUse, ...]
    unverified: tuple[str, ...]

    @property
    def fullest(self) -> MemoryUse | None:
        """The scratchpad of which the largest share is used; ``None`` without scratchpads."""
        spms = [memory for memory in self.memories if memory.kind is MemoryKind.SPM]
        return max(spms, key=lambda memory: memory.peak / memory.capacity, default=None)


def summarise(problem: Problem, plan: Plan, bound: int, bound_source: str) -> Summary:
    """Return the figures of a plan that the checker has accepted.

    Parameters
    ----------
    bound, bound_source
        The best proven bound on the problem's first quantity and its name.
    """
    claim, machine = plan.claim, problem.machine
    objective = claimed(claim).of(problem.objective.first)
    return Summary(
        network=network_name(problem),
        machine=machine.name,
        quantity=problem.objective.first,
        objective=objective,
        bound=bound,
        bound_source=bound_source,
        gap=quantities.relative_gap(objective, bound),
        makespan=claim.makespan,
        makespan_seconds=claim.makespan / machine.frequency if machine.frequency else None,
        dram_traffic=claim.dram_traffic,
        compulsory_dram_traffic=compulsory_dram_traffic(problem),
        energy=claim.energy,
        peak_spm=claim.peak_spm,
        tasks=len(plan.placements),
        transfers=len(plan.transfers),
        cores=use_of_cores(machine, plan),
        memories=use_of_memories(machine, plan),
        unverified=machine.unverified,
    )


def use_of_cores(machine: Machine, plan: Plan) -> tuple[CoreUse, ...]:
    """Return how each core is used, in order of core."""
    tasks = [0] * len(machine.cores)
    busy = [0] * len(machine.cores)
    for placement in plan.placements:
        tasks[placement.core] += 1
        busy[placement.core] += placement.end - placement.start
    makespan = max(plan.claim.makespan, 1)
    return tuple(
        CoreUse(
            core=core.name,
            tasks=tasks[core.index],
            busy=busy[core.index],
            utilisation=busy[core.index] / makespan,
        )
        for core in machine.cores
    )


def use_of_memories(machine: Machine, plan: Plan) -> tuple[MemoryUse, ...]:
    """Return how each memory but the DRAM is used, in order of memory."""
    peak = [0] * len(machine.memories)
    for residency in plan.residencies:
        peak[residency.memory] = max(peak[residency.memory], residency.offset + residency.bytes)
    return tuple(
        MemoryUse(
            memory=memory.name, kind=memory.kind, peak=peak[memory.index], capacity=memory.size
        )
        for memory in machine.memories
        if memory.kind is not MemoryKind.DRAM and memory.size is not None
    )


def title_of(problem: Problem, status: str, is_checked: bool, how: str = "") -> str:
    """Say what is mapped onto what, and how it ended."""
    cores = quantities.count(len(problem.machine.cores), "core")
    verdict = ", checked" if is_checked else ""
    return f"{network_name(problem)} on {problem.machine.name} ({cores}): {status}{how}{verdict}"


def rows_of(
    summary: Summary, any_tiles: int | None, solver: str, seconds: float | None
) -> list[Row]:
    """Return the figures of a whole plan.

    Parameters
    ----------
    any_tiles
        What no plan of any tiling is below. Where it is known the gap is the one to it, for a bad
        tiling hides behind its own bound; the gap of these tiles comes after it.
    seconds
        Wall time of the whole solve.
    """
    first = summary.quantity
    found = [
        ("makespan", f"{summary.makespan:,} cycles", _as_time(summary)),
        *_gaps(summary, any_tiles),
        ("DRAM traffic", quantities.size(summary.dram_traffic), _against_compulsory(summary)),
        ("peak SPM", quantities.size(summary.peak_spm), _against_capacity(summary)),
        ("tasks", f"{summary.tasks:,}", ""),
        ("transfers", f"{summary.transfers:,}", ""),
        ("solver", solver, "" if seconds is None else f"{seconds:.1f} s in all"),
    ]
    if summary.energy:
        shown = f"{summary.energy / 1e9:,.3f} µJ"
        found.insert(-3, ("energy", shown, "of what the machine states"))
    if first is not Quantity.MAKESPAN:
        found.insert(1, ("objective", quantity(first, summary.objective), first.value))
    return found


def _gaps(summary: Summary, any_tiles: int | None) -> list[Row]:
    first = summary.quantity
    proof = f"to {quantity(first, summary.bound)}: {summary.bound_source}"
    own = quantities.percent(summary.gap), f"{proof}{', optimal' * (summary.gap == 0)}"
    if any_tiles is None:
        return [("gap", *own)]
    most = quantities.percent(quantities.relative_gap(summary.objective, any_tiles))
    return [
        ("gap", most, f"to {quantity(first, any_tiles)}, which no tiling is below"),
        ("gap of tiles", *own),
    ]


def quantity(measured: Quantity, value: int) -> str:
    """Return a value with its unit."""
    return f"{value:,} {UNITS[measured]}"


def as_text(heading: str, table: Sequence[Row]) -> str:
    """Return the rows in columns, the values flush right."""
    names = max(len(name) for name, _, _ in table)
    values = max((len(value) for _, value, remark in table if remark), default=0)
    lines = [f"{name:<{names}}  {value:>{values}}  {why}".rstrip() for name, value, why in table]
    return "\n".join([heading, *lines])


def as_html(heading: str, table: Sequence[Row]) -> str:
    """Return the rows as a table for a notebook."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:right'>{escape(value)}</td>"
        f"<td style='text-align:left'>{escape(why)}</td></tr>"
        for name, value, why in table
    )
    return f"<table><caption>{escape(heading)}</caption><tbody>{body}</tbody></table>"


def _as_time(summary: Summary) -> str:
    seconds = summary.makespan_seconds
    if not seconds:
        return ""
    return (
        f"{quantities.time(seconds)} at {quantities.frequency(round(summary.makespan / seconds))}"
    )


def _against_compulsory(summary: Summary) -> str:
    compulsory = summary.compulsory_dram_traffic
    if not compulsory:
        return "none is compulsory"
    return f"{summary.dram_traffic / compulsory:.2f} × compulsory {quantities.size(compulsory)}"


def _against_capacity(summary: Summary) -> str:
    fullest = summary.fullest
    if fullest is None:
        return ""
    share = quantities.percent(fullest.peak / fullest.capacity)
    return f"{share} of {quantities.size(fullest.capacity)} in {fullest.memory}"
