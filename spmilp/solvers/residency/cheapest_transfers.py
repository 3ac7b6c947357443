"""What each transfer costs: the cheapest option of a slice between two memories."""

from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import MemoryIdx, SliceIdx


class CheapestTransfers:
    """The cheapest transfer options of one problem, in its first quantity.

    Attributes
    ----------
    dram
        Where slices wait that are not on the chip.
    """

    def __init__(self, tables: ProblemTables) -> None:
        self._tables = tables
        self._in_energy = tables.problem.objective.first is Quantity.ENERGY
        self.dram = tables.machine.drams[0].index

    def option(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> TransferOption | None:
        """Return the cheapest one that copies a slice out of what holds it; ``None`` without any.

        Of several, the one with the fewest cycles.
        """
        able = self._tables.transfers.out_of(holder, slice_, source, destination)
        return min(able, key=lambda one: (self.cost(one), one.cycles, one.engine), default=None)

    def cost(self, option: TransferOption) -> int:
        """Return what a transfer adds to the first quantity."""
        return option.energy if self._in_energy else option.traffic
