"""Figures of a plan as a table for a terminal, or for a notebook."""

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from spmilp.problem.objective import Quantity

UNITS = {
    Quantity.MAKESPAN: "cycles",
    Quantity.DRAM_TRAFFIC: "B",
    Quantity.ENERGY: "fJ",
    Quantity.PEAK_SPM: "B",
    Quantity.PERIOD: "cycles",
}

Row: TypeAlias = tuple[str, str, str]
"""A figure's name, its value with unit, and what it is to be compared with."""


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
