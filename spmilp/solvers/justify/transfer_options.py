"""How a slice can be sent from one memory to another: engine, links, cycles.

The .pxd has the same tuples, and the same constants, for C.
"""

from typing import NamedTuple

import numpy as np

from spmilp.cached import cached
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.solvers.justify.schedule import Demands, demands_of_transfers, pools_of
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import Ints, Rows, Table, ranges_of
from spmilp.solvers.schedule.kernels.tables import (
    MOST_MEMORIES_WITH_ALL_PAIRS,
    MachineTables,
    machine_tables,
    problem_tables,
)


class EngineUse(NamedTuple):
    """An engine on a route: its setup, the latency, and its rate times a scale."""

    engine: int
    setup: int
    latency: int
    rate: int


class OptionTables(NamedTuple):
    """The transfer options between memories that are no DRAMs, for kernels.

    Attributes
    ----------
    pair_at
        The row of ``pairs`` for each source and destination, ``pair_at[source * memories +
        destination]``; -1 where nothing leads.
    pairs, options
        Of each pair the options, one for each engine.
    demands
        What each option holds of the resources of a schedule.
    limits
        Of each engine: what its transfers may be; and the capacity of engines and links.
    slices
        What is known of each slice.
    scale
        The unit of rates: bytes per cycle, times this.
    first_engine
        The resource of a schedule that is engine 0; the others follow, then the links.
    memories
        How many there are.
    """

    pair_at: Ints
    pairs: Table
    options: Table
    demands: Demands
    limits: Table
    slices: Table
    scale: int
    first_engine: int
    memories: int


def option_tables_of(problem: Problem, columns: PlanColumns) -> OptionTables:
    """Return the options between scratchpads; in large machines, for the pairs a plan uses."""
    machine = problem.machine
    if len(machine.memories) - len(machine.drams) <= MOST_MEMORIES_WITH_ALL_PAIRS:
        tables = _tables_between_scratchpads(machine)
    else:
        drams = {dram.index for dram in machine.drams}
        filler = columns.fillers()
        moved = np.flatnonzero(filler >= columns.tasks)
        sources = columns.reads.items[columns.reads.begin[filler[moved]]]
        ends = (columns.memory[sources].tolist(), columns.memory[moved].tolist())
        pairs = (pair for pair in zip(*ends, strict=True) if not drams.intersection(pair))
        tables = machine_tables(machine, pairs)
    first_engine = len(pools_of(machine))
    return OptionTables(
        pair_at=tables.pair_at.ravel(),
        pairs=tables.pairs,
        options=tables.options,
        demands=_demands(tables, first_engine),
        limits=tables.resources,
        slices=problem_tables(problem).slices,
        scale=tables.scale,
        first_engine=first_engine,
        memories=len(machine.memories),
    )


@cached
def _tables_between_scratchpads(machine: Machine) -> MachineTables:
    drams = {dram.index for dram in machine.drams}
    inner = [memory.index for memory in machine.memories if memory.index not in drams]
    return machine_tables(machine, ((a, b) for a in inner for b in inner if a != b))


def _demands(tables: MachineTables, first_engine: int) -> Demands:
    """Return what each option holds: a channel of its engine, and its rate on every link."""
    lengths = tables.pairs["options_to"] - tables.pairs["options_from"]
    pair = np.repeat(np.arange(lengths.size), lengths)
    first, past = tables.pairs["links_from"][pair], tables.pairs["links_to"][pair]
    links, options = ranges_of(tables.links, first, past - first), tables.options
    at = links.begin[:-1]
    rows = Rows(
        begin=links.begin + np.arange(links.begin.size),
        items=first_engine + np.insert(links.items, at, options["engine"]),
    )
    amounts = np.insert(np.repeat(options["rate"], past - first), at, 1)
    is_pipelined = tables.resources["pipelined"][options["engine"]] != 0
    return demands_of_transfers(rows, amounts, options["setup"], options["latency"], is_pipelined)


WHOLE, PART, AT_PLACE = range(3)
"""How a slice lies where it is copied from: alone, in its buffer, or in its tensor in a DRAM."""


class Copy(NamedTuple):
    """A slice to be copied between two memories, within the cycles from ``ready`` to ``by``.

    ``pair`` is the row of the memories in the tables; ``form`` is ``WHOLE``, or ``PART`` where it
    is copied out of the whole buffer.
    """

    pair: int
    what: int
    form: int
    ready: int
    by: int


class Booking(NamedTuple):
    """An option and when it is taken; option -1 for none."""

    option: int
    start: int
    end: int
