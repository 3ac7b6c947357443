"""Common parts of figures: axes for small multiples, legends, titles."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spmilp.errors import MissingExtraError
from spmilp.problem.problem import Problem
from spmilp.report.summary import network_name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 11.0
"""Inches of a figure."""

LETTERS_OF_A_LEGEND = 120
"""That fit side by side below a figure."""


def grid_of_axes(
    count: int, columns: int, heights: Sequence[float], *, shares_x: bool = True
) -> "tuple[Figure, list[Axes]]":
    """Return a figure with ``count`` axes in rows of ``columns``.

    Parameters
    ----------
    heights
        Inches of each row.
    shares_x
        The axes have one axis of time in common.

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
    grid = figure.subplots(
        len(heights), columns, sharex=shares_x, squeeze=False, height_ratios=heights
    )
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def legend_of_colours(
    figure: "Figure", colours: Mapping[str, str], shown: Iterable[str], heading: str = ""
) -> None:
    """Name the colours that the figure uses below its axes, in the order of ``colours``."""
    from matplotlib.patches import Patch

    used = set(shown)
    handles: list[Artist] = [
        Patch(facecolor=colour, edgecolor="black", linewidth=0.4, label=name)
        for name, colour in colours.items()
        if name in used
    ]
    legend_below(figure, handles, heading)


def legend_below(figure: "Figure", handles: "Sequence[Artist]", heading: str = "") -> None:
    """Put a legend below the axes, in as many columns as its longest name leaves room for."""
    if handles:
        longest = max(len(str(handle.get_label())) for handle in handles) + 6
        columns = max(1, min(len(handles), LETTERS_OF_A_LEGEND // longest))
        figure.legend(
            handles=list(handles),
            loc="outside lower center",
            ncols=columns,
            title=heading or None,
            fontsize="small",
        )


def without_markup(name: str) -> str:
    """Return a name from a model as plain text: matplotlib reads ``$`` as mathematics."""
    return name.replace("$", r"\$")


def shortened(name: str, longest: int = 32) -> str:
    """Return a name without its middle: the beginning says what it is, the end which tile."""
    if len(name) <= longest:
        return name
    head = longest // 2
    return f"{name[:head]}…{name[head + 1 - longest :]}"


def title(problem: Problem) -> str:
    """Say which network is mapped onto which machine."""
    return without_markup(f"{network_name(problem)} on {problem.machine.name}")
