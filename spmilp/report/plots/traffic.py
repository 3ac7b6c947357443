"""DRAM traffic by tensor, beside what no plan can avoid."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spmilp import quantities
from spmilp.analysis.subject import Part, Subject
from spmilp.analysis.traffic import TensorTraffic, traffic_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.palette import PART_COLOURS
from spmilp.report.plots.figures import grid_of_axes, shortened, title, without_markup
from spmilp.units import Bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 40
"""Tensors that get a bar of their own; the others share one."""


def traffic(problem: Problem, plan: Plan) -> "Figure":
    """Draw a bar for each tensor: bytes loaded and stored, and a line at what is compulsory.

    Tensors with the most beyond that come first.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    rows = traffic_of(Subject(problem=problem, plan=plan))
    bars = [(row.tensor, row.loaded, row.stored, row.compulsory) for row in rows[:MOST]]
    if len(rows) > MOST:
        bars.append((f"{len(rows) - MOST} more", *_sums(rows[MOST:])))
    figure, (axis,) = grid_of_axes(1, 1, [max(1.2, 0.2 * len(bars))])
    total, least = plan.claim.dram_traffic, sum(row.compulsory for row in rows)
    of_compulsory = f", of which {quantities.size(least)} are compulsory"
    figure.suptitle(f"{title(problem)}: {quantities.size(total)} of DRAM traffic{of_compulsory}")
    places = range(len(bars))
    loaded = [bar[1] / 1024 for bar in bars]
    axis.barh(places, loaded, color=PART_COLOURS[Part.LOAD], label="loaded")
    stored = [bar[2] / 1024 for bar in bars]
    axis.barh(places, stored, left=loaded, color=PART_COLOURS[Part.STORE], label="stored")
    axis.barh(
        places,
        [bar[3] / 1024 for bar in bars],
        facecolor="none",
        edgecolor="black",
        linewidth=1.6,
        label="compulsory",
    )
    names = [without_markup(shortened(bar[0], 48)) for bar in bars]
    axis.set_yticks(places, labels=names, fontsize="small")
    axis.set_ylim(len(bars) - 0.4, -0.6)
    axis.set_xlabel("KiB")
    axis.legend(loc="lower right")
    return figure


def _sums(rows: Sequence[TensorTraffic]) -> tuple[Bytes, Bytes, Bytes]:
    return (
        sum(row.loaded for row in rows),
        sum(row.stored for row in rows),
        sum(row.compulsory for row in rows),
    )
