"""Incumbent and bound over the time of a search."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spmilp import quantities
from spmilp.analysis.subject import Part
from spmilp.errors import ArgumentError
from spmilp.problem.problem import Problem
from spmilp.report.answer_table import UNITS
from spmilp.report.palette import PART_COLOURS
from spmilp.report.plots.figures import grid_of_axes, title
from spmilp.report.search_log import LogEntry

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def gap_over_time(problem: Problem, log: Sequence[LogEntry]) -> "Figure":
    """Draw the best objective and the best bound over the seconds of a search.

    Raises
    ------
    ArgumentError
        If nothing is logged.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not log:
        raise ArgumentError(
            "nothing is known of the search: spmilp solve --log-file FILE.jsonl writes its log"
        )
    figure, (axis,) = grid_of_axes(1, 1, [4.0])
    quantity = problem.objective.first
    gap = log[-1].gap
    ended = "" if gap is None else f", gap {quantities.percent(gap)} at the end"
    figure.suptitle(f"{title(problem)}: {str(quantity).replace('_', ' ')}{ended}")
    end = log[-1].seconds
    for name, colour, points in (
        ("incumbent", PART_COLOURS[Part.LOAD], [(each.seconds, each.incumbent) for each in log]),
        ("bound", PART_COLOURS[Part.STORE], [(each.seconds, each.bound) for each in log]),
    ):
        known = [(seconds, value) for seconds, value in points if value is not None]
        if known:
            seconds = [second for second, _ in known] + [end]
            values = [value for _, value in known] + [known[-1][1]]
            axis.step(seconds, values, where="post", color=colour, linewidth=2, label=name)
    both = [each for each in log if each.gap is not None]
    axis.fill_between(
        [each.seconds for each in both] + [end] * bool(both),
        [each.bound or 0 for each in (*both, *both[-1:])],
        [each.incumbent or 0 for each in (*both, *both[-1:])],
        step="post",
        color="0.92",
        label="gap",
    )
    axis.set_xlim(0, max(end, 0.001))
    axis.set_xlabel("seconds")
    axis.set_ylabel(UNITS[quantity])
    axis.legend(loc="upper right")
    return figure
