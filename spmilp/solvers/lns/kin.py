"""Which residencies take over the bytes of another in place."""

import numpy as np

from spmilp.compiled import compiled
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.draft import Rows


def kin_of(reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Return for each residency the one it takes over from, and the one it hands over to.

    A task that writes over an operand is the only case in which a valid plan lets two share bytes.
    """
    parent, heir = (np.full(memory.size, NONE) for _ in range(2))
    _find(reads, fills, memory, offset, size, parent, heir)
    return parent, heir


@compiled
def _find(
    reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints, parent: Ints, heir: Ints
) -> None:
    for act in range(reads.begin.size - 1):
        for i in range(reads.begin[act], reads.begin[act + 1]):
            old = reads.items[i]
            for j in range(fills.begin[act], fills.begin[act + 1]):
                new = fills.items[j]
                below = offset[old] < offset[new] + size[new]
                above = offset[new] < offset[old] + size[old]
                if memory[old] == memory[new] and below and above:
                    heir[old], parent[new] = new, old
