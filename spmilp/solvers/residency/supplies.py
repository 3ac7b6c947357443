"""What each transfer costs: the cheapest way of a slice between two memories."""

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import MemoryIdx, SliceIdx


class Supplies:
    """The cheapest ways of one problem, in its first quantity.

    Attributes
    ----------
    dram
        Where slices wait that are not on the chip.
    """

    def __init__(self, tables: ProblemTables) -> None:
        self._tables = tables
        self._in_energy = tables.problem.objective.first is Quantity.ENERGY
        self.dram = tables.machine.drams[0].index

    def way(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> TransferOption | None:
        """Return the cheapest way to copy a slice out of what holds it; ``None`` if there is none.

        Of several, the one with the fewest cycles.
        """
        ways = self._tables.transfers
        able = [
            way
            for way in ways.between(slice_, source, destination)
            if ways.can_copy(way, slice_, holder)
        ]
        return min(able, key=lambda way: (self.cost(way), way.cycles, way.engine), default=None)

    def store(self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx) -> TransferOption | None:
        """Return the cheapest way to copy a slice out of what holds it to DRAM."""
        return self.way(slice_, holder, source, self.dram)

    def cost(self, way: TransferOption) -> int:
        """Return what a transfer adds to the first quantity."""
        return way.energy if self._in_energy else way.traffic


def is_in_scope(problem: Problem) -> bool:
    """Say whether bytes are to be few, and slices go to one DRAM in which nobody works."""
    if problem.objective.first not in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY):
        return False
    machine = problem.machine
    kinds = {machine.memories[core.memory].kind for core in machine.cores}
    return len(machine.drams) == 1 and MemoryKind.DRAM not in kinds
