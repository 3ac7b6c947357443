"""Common parts of figures: axes for small multiples, legends, titles, colours.

The colours can be told apart with any colour vision: the eight of Okabe and Ito, "Color Universal
Design" (2008).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spmilp.errors import MissingExtraError
from spmilp.problem.problem import BufferKind, Problem
from spmilp.report.summary import network_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 11.0
"""Inches of a figure."""

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


def grid_of_axes(count: int, columns: int, heights: Sequence[float]) -> "tuple[Figure, list[Axes]]":
    """Return a figure with ``count`` axes in rows of ``columns`` that share the axis of time.

    Parameters
    ----------
    heights
        Inches of each row.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed: pip install 'spmilp[plot]'"
        ) from error

    figure = Figure(figsize=(WIDTH, sum(heights) + 1.0), layout="constrained")
    grid = figure.subplots(len(heights), columns, sharex=True, squeeze=False, height_ratios=heights)
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def legend_of_colours(figure: "Figure", colours: Mapping[str, str], shown: Iterable[str]) -> None:
    """Name the colours that the figure uses below its axes, in the order of ``colours``."""
    from matplotlib.patches import Patch

    used = set(shown)
    handles = [
        Patch(facecolor=colour, edgecolor="black", linewidth=0.4, label=name)
        for name, colour in colours.items()
        if name in used
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def without_markup(name: str) -> str:
    """Return a name from a model as plain text: matplotlib reads ``$`` as mathematics."""
    return name.replace("$", r"\$")


def title(problem: Problem) -> str:
    """Say which network is mapped onto which machine."""
    return without_markup(f"{network_name(problem)} on {problem.machine.name}")
