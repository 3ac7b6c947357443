"""Rule 10: the stated quantities are the plan's, and its bound is not above the objective."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Transfer
from spmilp.problem.objective import Quantity
from spmilp.units import Bytes, Femtojoules, MemoryIdx


def claims(case: Case) -> Iterator[Violation]:
    """Computed again from the plan, every quantity is equal, and the bound holds."""
    claim = case.plan.claim
    stated = {
        Quantity.MAKESPAN: claim.makespan,
        Quantity.DRAM_TRAFFIC: claim.dram_traffic,
        Quantity.ENERGY: claim.energy,
        Quantity.PEAK_SPM: claim.peak_spm,
    }
    found = {
        Quantity.MAKESPAN: case.makespan,
        Quantity.DRAM_TRAFFIC: _dram_traffic(case),
        Quantity.ENERGY: _energy(case),
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


def _dram_traffic(case: Case) -> Bytes:
    return sum(
        case.problem.slices[move.slice].bytes
        for move in case.plan.transfers
        for memory in _memories(case, move)
        if case.machine.memories[memory].kind is MemoryKind.DRAM
    )


def _energy(case: Case) -> Femtojoules:
    """Add up what the problem and the machine state; what they do not state counts nothing."""
    total = 0
    for placement in case.plan.placements:
        energy = case.problem.tasks[placement.task].energy
        if energy:
            total += energy[case.machine.cores[placement.core].kind] or 0
    for move in case.plan.transfers:
        memories = sum(
            case.machine.memories[memory].energy_per_byte or 0 for memory in _memories(case, move)
        )
        links = sum(case.machine.links[link].energy_per_byte or 0 for link in move.route)
        total += case.problem.slices[move.slice].bytes * (memories + links)
    return total


def _peak_spm(case: Case) -> Bytes:
    return max(
        (
            stay.offset + stay.bytes
            for stay in case.plan.residencies
            if case.machine.memories[stay.memory].kind is MemoryKind.SPM
        ),
        default=0,
    )


def _memories(case: Case, move: Transfer) -> list[MemoryIdx]:
    """Return the memories of a transfer's source and destinations."""
    ends = (move.source, *move.destinations)
    return [case.plan.residencies[end].memory for end in ends]
