"""Rule 10: the stated quantities are the plan's, and its bound is not above the objective."""

from collections.abc import Iterator
from typing import TypeAlias

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.units import Bytes, Femtojoules, LinkIdx, MemoryIdx

_Path: TypeAlias = tuple[tuple[MemoryIdx, ...], tuple[LinkIdx, ...]]
"""The memories of a transfer's source and destinations, and the links between."""


def claims(case: Case) -> Iterator[Violation]:
    """Computed again from the plan, every quantity is equal, and the bound holds."""
    claim = case.plan.claim
    stated = {
        Quantity.MAKESPAN: claim.makespan,
        Quantity.DRAM_TRAFFIC: claim.dram_traffic,
        Quantity.ENERGY: claim.energy,
        Quantity.PEAK_SPM: claim.peak_spm,
    }
    moved = _moved(case)
    found = {
        Quantity.MAKESPAN: case.makespan,
        Quantity.DRAM_TRAFFIC: _dram_traffic(case, moved),
        Quantity.ENERGY: _energy(case, moved),
        Quantity.PEAK_SPM: _peak_spm(case),
    }
    for quantity in Quantity:
        if stated[quantity] != found[quantity]:
            yield Violation(
                "claims",
                ("plan", quantity.value),
                f"plan states {quantity.value} {stated[quantity]}, but it is {found[quantity]}",
            )
    first = case.problem.objective.first
    if claim.bound > found[first]:
        yield Violation(
            "claims",
            ("plan", "bound"),
            f"plan states the bound {claim.bound} > {found[first]}, its {first.value}",
        )


def _moved(case: Case) -> dict[_Path, Bytes]:
    """Return the bytes of all transfers that have the same memories and route."""
    total: dict[_Path, Bytes] = {}
    slices, residencies = case.problem.slices, case.plan.residencies
    for move in case.plan.transfers:
        ends = tuple([residencies[end].memory for end in (move.source, *move.destinations)])
        path = ends, move.route
        total[path] = total.get(path, 0) + slices[move.slice].bytes
    return total


def _dram_traffic(case: Case, moved: dict[_Path, Bytes]) -> Bytes:
    return sum(
        size
        for (memories, _), size in moved.items()
        for memory in memories
        if case.machine.memories[memory].kind is MemoryKind.DRAM
    )


def _energy(case: Case, moved: dict[_Path, Bytes]) -> Femtojoules:
    """Add up what the problem and the machine state; what they do not state counts nothing."""
    total = 0
    for placement in case.plan.placements:
        energy = case.problem.tasks[placement.task].energy
        if energy:
            total += energy[case.machine.cores[placement.core].kind] or 0
    for (memories, route), size in moved.items():
        ends = sum(case.machine.memories[memory].energy_per_byte or 0 for memory in memories)
        links = sum(case.machine.links[link].energy_per_byte or 0 for link in route)
        total += size * (ends + links)
    return total


def _peak_spm(case: Case) -> Bytes:
    return max(
        (
            residency.offset + residency.bytes
            for residency in case.plan.residencies
            if case.machine.memories[residency.memory].kind is MemoryKind.SPM
        ),
        default=0,
    )
