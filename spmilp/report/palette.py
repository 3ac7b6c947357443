"""Colours that can be told apart with any colour vision, and in print.

Kinds of buffers have colours of Okabe and Ito, "Color Universal Design" (2008). Operators have the
light ones, on which black text can be read, and parts of the chain and transfers the contrasting
ones of Paul Tol, "Colour Schemes" (SRON/EPS/TN/09-002, 2021). Operators are more than there are
colours: they come round with another hatching.
"""

from spmilp.analysis.subject import Part
from spmilp.problem.problem import BufferKind, Problem
from spmilp.units import TaskIdx

SCRATCH = "scratch"

KIND_COLOURS: dict[str, str] = {
    BufferKind.INPUT: "#56B4E9",
    BufferKind.WEIGHT: "#E69F00",
    BufferKind.INTERMEDIATE: "#009E73",
    BufferKind.PARTIAL: "#F0E442",
    BufferKind.OUTPUT: "#0072B2",
    SCRATCH: "#999999",
}
"""A colour for each kind of buffer, and for scratch bytes."""

CONTRASTING = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
"""Colours of Okabe and Ito for lines, which are thin."""

OPERATOR_COLOURS = (
    *("#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF", "#AAAA00"),
)
"""Colours of fused operators, in the order in which they come in a problem."""

HATCHES = ("", "////", "\\\\\\\\", "xxxx")
"""Put over the colours of operators, each time that they come round."""

PART_COLOURS: dict[Part, str] = {
    Part.COMPUTE: "#BBBBBB",
    Part.LOAD: "#004488",
    Part.STORE: "#BB5566",
    Part.MOVE: "#DDAA33",
    Part.UNUSED: "#FFFFFF",
}
"""A colour for each direction of transfers, and for what else the critical chain does."""


def operators_of(problem: Problem) -> dict[TaskIdx, str]:
    """Return the fused operator of each task, or its own name where it is of none."""
    return {task.index: task.name if task.tile is None else task.tile.of for task in problem.tasks}
