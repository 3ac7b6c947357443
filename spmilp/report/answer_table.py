"""The figures of an answer as rows, for the command line, a terminal and a notebook alike."""

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from spmilp import amounts
from spmilp.bounds.roofline import Roofline
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.report.summary import Summary, network_name

UNITS = {
    Quantity.MAKESPAN: "cycles",
    Quantity.DRAM_TRAFFIC: "B",
    Quantity.ENERGY: "fJ",
    Quantity.PEAK_SPM: "B",
}

Row: TypeAlias = tuple[str, str, str]
"""A figure's name, its value with unit, and what it is to be compared with."""


def title(problem: Problem, status: str, is_checked: bool, how: str = "") -> str:
    """Say what is mapped onto what, and how it ended."""
    cores = amounts.count(len(problem.machine.cores), "core")
    verdict = ", checked" if is_checked else ""
    return f"{network_name(problem)} on {problem.machine.name} ({cores}): {status}{how}{verdict}"


def rows(
    summary: Summary, roofline: Roofline | None, solver: str, seconds: float | None
) -> list[Row]:
    """Return the figures of a whole plan.

    Parameters
    ----------
    roofline
        Shown too where it is known, for a bad tiling hides behind its own bound.
    seconds
        Wall time of the whole solve.
    """
    first = summary.quantity
    found = [
        ("makespan", f"{summary.makespan:,} cycles", _as_time(summary)),
        ("lower bound", quantity(first, summary.bound), summary.bound_source),
        ("gap", amounts.percent(summary.gap), "optimal" if summary.gap == 0 else ""),
        ("DRAM traffic", amounts.size(summary.dram_traffic), _against_compulsory(summary)),
        ("peak SPM", amounts.size(summary.peak_spm), _against_capacity(summary)),
        ("tasks", f"{summary.tasks:,}", ""),
        ("transfers", f"{summary.transfers:,}", ""),
        ("solver", solver, "" if seconds is None else f"{seconds:.1f} s in all"),
    ]
    if summary.energy:
        found.insert(5, ("energy", f"{summary.energy / 1e9:,.3f} µJ", "of what the machine states"))
    if roofline is not None:
        why = f"{roofline.bound_by}, whatever the tiles"
        found.insert(2, ("roofline", f"{roofline.cycles:,} cycles", why))
    if first is not Quantity.MAKESPAN:
        found.insert(1, ("objective", quantity(first, summary.objective), first.value))
    return found


def quantity(measured: Quantity, value: int) -> str:
    """Return a value with its unit."""
    return f"{value:,} {UNITS[measured]}"


def as_text(heading: str, table: Sequence[Row]) -> str:
    """Return the rows in columns, the values flush right."""
    names = max(len(name) for name, _, _ in table)
    values = max((len(value) for _, value, remark in table if remark), default=0)
    lines = [f"{name:<{names}}  {value:>{values}}  {why}".rstrip() for name, value, why in table]
    return "\n".join([heading, *lines])


def as_html(heading: str, table: Sequence[Row]) -> str:
    """Return the rows as a table for a notebook."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:right'>{escape(value)}</td>"
        f"<td style='text-align:left'>{escape(why)}</td></tr>"
        for name, value, why in table
    )
    return f"<table><caption>{escape(heading)}</caption><tbody>{body}</tbody></table>"


def _as_time(summary: Summary) -> str:
    seconds = summary.makespan_seconds
    if not seconds:
        return ""
    return f"{amounts.time(seconds)} at {amounts.frequency(round(summary.makespan / seconds))}"


def _against_compulsory(summary: Summary) -> str:
    compulsory = summary.compulsory_dram_traffic
    if not compulsory:
        return "none is compulsory"
    return f"{summary.dram_traffic / compulsory:.2f} × compulsory {amounts.size(compulsory)}"


def _against_capacity(summary: Summary) -> str:
    fullest = summary.fullest
    if fullest is None:
        return ""
    share = amounts.percent(fullest.peak / fullest.capacity)
    return f"{share} of {amounts.size(fullest.capacity)} in {fullest.memory}"
