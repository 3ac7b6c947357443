"""Colours that people with any colour vision can tell apart.

The eight colours of Okabe and Ito, "Color Universal Design" (2008).
"""

from spmilp.problem.problem import BufferKind

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#999999"

SCRATCH = "scratch"

KIND_COLOURS: dict[str, str] = {
    BufferKind.INPUT: SKY_BLUE,
    BufferKind.WEIGHT: ORANGE,
    BufferKind.INTERMEDIATE: GREEN,
    BufferKind.PARTIAL: YELLOW,
    BufferKind.OUTPUT: BLUE,
    SCRATCH: GREY,
}
"""A colour for each kind of buffer, and for scratch bytes."""

GROUP_COLOURS = (GREEN, ORANGE, SKY_BLUE, PURPLE, YELLOW, BLUE)
"""Colours for neighbouring groups of tasks, taken in turn."""
