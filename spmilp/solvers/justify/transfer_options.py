"""What transfers of a problem may be, for kernels.

The .pxd has the same tuple, and the same constants, for C.
"""

from typing import NamedTuple

from spmilp.cached import cached
from spmilp.problem.problem import Problem
from spmilp.solvers.schedule.kernels.records import Table
from spmilp.solvers.schedule.kernels.tables import machine_tables, problem_tables


class EngineUse(NamedTuple):
    """An engine on a route: its setup, the latency, and its rate times a scale."""

    engine: int
    setup: int
    latency: int
    rate: int


class OptionTables(NamedTuple):
    """What is known of engines, links and slices.

    Attributes
    ----------
    limits
        Of each engine: what its transfers may be; and the capacity of engines and links.
    slices
        What is known of each slice.
    scale
        The unit of rates: bytes per cycle, times this.
    """

    limits: Table
    slices: Table
    scale: int


@cached
def option_tables_of(problem: Problem) -> OptionTables:
    """Return the tables of a problem."""
    tables = machine_tables(problem.machine, ())
    return OptionTables(tables.resources, problem_tables(problem).slices, tables.scale)


WHOLE, PART, AT_PLACE = range(3)
"""How a slice lies where it is copied from: alone, in its buffer, or in its tensor in a DRAM."""
