"""The figures of a plan as plain data."""

from dataclasses import dataclass

from spmilp import quantities
from spmilp.explaining.text import network_name
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.plan.measures import claimed, compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, Femtojoules


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreUse:
    """Use of one core.

    Parameters
    ----------
    busy
        Cycles in which it runs a task.
    utilisation
        ``busy`` over the makespan, 0 to 1.
    """

    core: str
    tasks: int
    busy: Cycles
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Use of one on-chip memory.

    Parameters
    ----------
    peak
        Bytes from address 0 to the end of its highest residency.
    capacity
        Its size in bytes, reserved ones included.
    """

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
