"""What is not dominated, drawn: one small picture for each pair of columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spmilp.report.plots.figures import grid_of_axes, without_markup
from spmilp.sizing.table import column_named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNITS = {
    "makespan": "cycles",
    "dram_traffic": "bytes to and from DRAM",
    "energy": "fJ",
    "spm": "bytes of each scratchpad",
    "peak_spm": "bytes used of a scratchpad",
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7")
"""Okabe and Ito's, of rows that are not dominated, by model; the others are pale."""


def pareto_figure(frame: "pd.DataFrame", columns: Sequence[str]) -> "Figure":
    """Draw the first column over each of the others; of two, a staircase joins the marked rows.

    Parameters
    ----------
    frame
        As :func:`~spmilp.sizing.table.mark_undominated` returns it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    names = [column_named(frame, name) for name in columns]
    first, others = names[0], names[1:] or names
    figure, grid = grid_of_axes(len(others), len(others), (4.0,), shares_x=False)
    for axes, other in zip(grid, others, strict=True):
        for number, (model, rows) in enumerate(frame[frame["makespan"].notna()].groupby("model")):
            colour = COLOURS[number % len(COLOURS)]
            _draw(axes, rows, (other, first), colour, _short(str(model)))
            if len(names) == 2:
                best = rows[rows["pareto"]].sort_values([other, first]).astype({first: float})
                axes.step(best[other].astype(float), best[first], where="post", color=colour)
        axes.set(xlabel=_label(other), ylabel=_label(first))
        axes.ticklabel_format(style="plain")
        axes.tick_params(axis="x", rotation=30)
    if len(frame):
        grid[0].legend(loc="upper right")
    return figure


def _draw(
    axes: "Axes", rows: "pd.DataFrame", columns: tuple[str, str], colour: str, label: str
) -> None:
    x, y = columns
    places = rows[[x, y]].astype(float)
    best = places[rows["pareto"]]
    axes.scatter(places[x], places[y], s=14, color=colour, alpha=0.35)
    axes.scatter(best[x], best[y], s=26, color=colour, label=label, zorder=3)


def _label(column: str) -> str:
    unit = f" ({UNITS[column]})" if column in UNITS else ""
    return without_markup(column.replace("_", " ") + unit)


def _short(model: str) -> str:
    return without_markup(Path(model.removeprefix("onnx:")).stem)
