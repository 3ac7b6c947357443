"""The figures of an answer as rows, for the command line, a terminal and a notebook alike."""

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from spmilp import quantities
from spmilp.explaining.text import network_name
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.report.summary import Summary

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
    cores = quantities.count(len(problem.machine.cores), "core")
    verdict = ", checked" if is_checked else ""
    return f"{network_name(problem)} on {problem.machine.name} ({cores}): {status}{how}{verdict}"


def rows(summary: Summary, any_tiles: int | None, solver: str, seconds: float | None) -> list[Row]:
    """Return the figures of a whole plan.

    Parameters
    ----------
    any_tiles
        What no plan of any tiling is below. Where it is known the gap is the one to it, for a bad
        tiling hides behind its own bound; the gap of these tiles comes after it.
    seconds
        Wall time of the whole solve.
    """
    first = summary.quantity
    found = [
        ("makespan", f"{summary.makespan:,} cycles", _as_time(summary)),
        *_gaps(summary, any_tiles),
        ("DRAM traffic", quantities.size(summary.dram_traffic), _against_compulsory(summary)),
        ("peak SPM", quantities.size(summary.peak_spm), _against_capacity(summary)),
        ("tasks", f"{summary.tasks:,}", ""),
        ("transfers", f"{summary.transfers:,}", ""),
        ("solver", solver, "" if seconds is None else f"{seconds:.1f} s in all"),
    ]
    if summary.energy:
        shown = f"{summary.energy / 1e9:,.3f} µJ"
        found.insert(-3, ("energy", shown, "of what the machine states"))
    if first is not Quantity.MAKESPAN:
        found.insert(1, ("objective", quantity(first, summary.objective), first.value))
    return found


def _gaps(summary: Summary, any_tiles: int | None) -> list[Row]:
    first = summary.quantity
    proof = f"to {quantity(first, summary.bound)}: {summary.bound_source}"
    own = quantities.percent(summary.gap), f"{proof}{', optimal' * (summary.gap == 0)}"
    if any_tiles is None:
        return [("gap", *own)]
    most = quantities.percent(quantities.relative_gap(summary.objective, any_tiles))
    return [
        ("gap", most, f"to {quantity(first, any_tiles)}, which no tiling is below"),
        ("gap of tiles", *own),
    ]


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
    return (
        f"{quantities.time(seconds)} at {quantities.frequency(round(summary.makespan / seconds))}"
    )


def _against_compulsory(summary: Summary) -> str:
    compulsory = summary.compulsory_dram_traffic
    if not compulsory:
        return "none is compulsory"
    return f"{summary.dram_traffic / compulsory:.2f} × compulsory {quantities.size(compulsory)}"


def _against_capacity(summary: Summary) -> str:
    fullest = summary.fullest
    if fullest is None:
        return ""
    share = quantities.percent(fullest.peak / fullest.capacity)
    return f"{share} of {quantities.size(fullest.capacity)} in {fullest.memory}"
