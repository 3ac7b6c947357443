"""The cut of network inputs and weights, which lie whole in DRAM, into buffers."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from spmilp.lowering.grid import Grid, covered_by, grid_of_reads, whole_grid
from spmilp.lowering.rates import MachineRates, least_capacity
from spmilp.lowering.storage import Storage, Value
from spmilp.machine.machine import Machine
from spmilp.units import Box, Bytes

READ_WHOLE_BELOW: Bytes = 4096
"""A tensor of at most this many bytes is loaded as a whole: its parts would cost more set-up than
bytes, and a core that runs several tiles of a group loads it once."""

SHARE_OF_MEMORY = 32
"""A tensor that is loaded as a whole takes at most this fraction of the least scratchpad."""


def whole_below(machine: Machine) -> Bytes:
    """Return up to how many bytes a tensor is always read as a whole on a machine."""
    least = least_capacity(machine, (core.kind for core in machine.cores))
    return min(READ_WHOLE_BELOW, least // SHARE_OF_MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialGrids:
    """Chooses the buffers of tensors that lie in DRAM at the start.

    The grid follows the tiling of one of the groups that read the tensor, without halos, so that
    neighbouring tasks share pieces; or it is one cell, and each task reads its own box in one go.
    Pieces that several tasks need can come from another scratchpad, so that DRAM sends each byte
    once; one cell has the fewest transfers, but DRAM sends the halos again. The grid with the least
    bytes is taken, where each transfer counts what could move during its set-up and latency; the
    finest among equal ones.

    Parameters
    ----------
    whole_below
        Bytes up to which a tensor is always read as a whole.
    """

    rates: MachineRates
    whole_below: Bytes

    def add(self, storage: Storage, value: Value, reads: Sequence[Sequence[Box]]) -> None:
        """Add the buffers of one tensor.

        Parameters
        ----------
        reads
            For each group that reads it, the distinct boxes that its tasks read.
        """
        if prod(value.shape) * value.item <= self.whole_below:
            storage.add(value, whole_grid(value.shape), read_whole=True)
            return
        covered = covered_by(box for boxes in reads for box in boxes)
        grids = [grid_of_reads(boxes, covered) for boxes in reads]
        candidates = list(dict.fromkeys([*grids, covered]))
        best = min(
            (storage.cut_to_limits(value, grid) for grid in candidates),
            key=lambda grid: (self._effort(grid, value, reads), -grid.cells),
        )
        storage.add(value, best)

    def _effort(self, grid: Grid, value: Value, reads: Sequence[Sequence[Box]]) -> float:
        """Return the bytes that DRAM sends, and could send instead of setting transfers up."""
        transfers = sum(grid.count_overlapping(box) for boxes in reads for box in boxes)
        if grid.cells > 1 and self.rates.pieces_are_shared:
            elements = sum(map(_volume, grid.boxes()))
        else:
            elements = sum(_volume(box) for boxes in reads for box in boxes)
        return transfers * self.rates.dram_setup + elements * value.item


def _volume(box: Box) -> int:
    return prod(stop - start for start, stop in box)
