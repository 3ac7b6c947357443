"""How a slice can be sent from one memory to another: engine, links, cycles."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from spmilp.cached import cached
from spmilp.numba_layer import part
from spmilp.machine.machine import Machine
from spmilp.machine.routes import multicast_route, routes_of, transfer_rate
from spmilp.problem.problem import Problem
from spmilp.solvers.justify.schedule import Demands, earliest_start, pools_of
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import NONE, ZERO, Ints, Table, ranges_of
from spmilp.solvers.schedule.kernels.tables import (
    MOST_MEMORIES_WITH_ALL_PAIRS,
    MachineTables,
    can_copy,
    cycles_of_copy,
    machine_tables,
    problem_tables,
)
from spmilp.solvers.schedule.kernels.timeline import Timeline
from spmilp.units import Cycles, MemoryIdx, SliceIdx


class EngineUse(NamedTuple):
    """An engine on a route: the cycles of its setup and the latency, and its rate times a scale."""

    engine: int
    fixed: int
    rate: int


class OptionTables(NamedTuple):
    """The transfer options between memories that are no DRAMs, for compiled code.

    Attributes
    ----------
    pair_at
        The row of ``pairs`` for each source and destination; -1 where nothing leads.
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
    """

    pair_at: Ints
    pairs: Table
    options: Table
    demands: Demands
    limits: Table
    slices: Table
    scale: int
    first_engine: int


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
        pair_at=tables.pair_at,
        pairs=tables.pairs,
        options=tables.options,
        demands=_demands(tables, first_engine),
        limits=tables.resources,
        slices=problem_tables(problem).slices,
        scale=tables.scale,
        first_engine=first_engine,
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
    links = ranges_of(tables.links, first, past - first)
    at = links.begin[:-1]
    return Demands(
        begin=links.begin + np.arange(links.begin.size),
        items=first_engine + np.insert(links.items, at, tables.options["engine"]),
        amounts=np.insert(np.repeat(tables.options["rate"], past - first), at, 1),
    )


WHOLE, PART, AT_PLACE = (cast(int, np.int64(value)) for value in range(3))
"""How a slice lies where it is copied from: alone, in its buffer, or in its tensor in a DRAM."""


class Copy(NamedTuple):
    """A slice to be copied between two memories, within the cycles from ``ready`` to ``by``.

    Attributes
    ----------
    pair
        Row of the memories in the tables.
    form
        ``WHOLE``, or ``PART`` where it is copied out of the whole buffer.
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


@part
def _cycles(tables: OptionTables, taken: EngineUse, what: int, form: int) -> int:
    """Return the cycles that an engine takes for a slice; 0 if it cannot send it."""
    limits, entry = tables.limits[taken.engine], tables.slices[what]
    shape, offset = entry.packed, ZERO
    if form == PART:
        shape, offset = entry.from_parent, entry.offset_in_parent
    elif form == AT_PLACE:
        shape, offset = entry.at_place, entry.offset_at_place
    if not can_copy(limits, entry.bytes, shape, offset):
        return ZERO
    return cycles_of_copy(taken, entry.bytes, tables.scale)


@part
def earliest_option(tables: OptionTables, capacity: Ints, usage: Timeline, copy: Copy) -> Booking:
    """Return the option by which a copy ends first; option -1 if none is in time."""
    best = Booking(NONE, ZERO, copy.by + 1)
    pair = tables.pairs[copy.pair]
    for option in range(pair.options_from, pair.options_to):
        row = tables.options[option]
        taken = EngineUse(row.engine, row.fixed, row.rate)
        cycles = _cycles(tables, taken, copy.what, copy.form)
        if cycles == 0 or copy.ready + cycles >= best.end:
            continue
        start = earliest_start(tables.demands, capacity, usage, option, cycles, copy.ready)
        if start + cycles < best.end:
            best = Booking(option, start, start + cycles)
    return best


class TransferOption(NamedTuple):
    """A transfer's cycles, and its engine and links with what it holds of each, as in schedules."""

    cycles: Cycles
    resources: tuple[int, ...]
    amounts: tuple[int, ...]


class TransferOptions:
    """The shortest transfers from any memory to others, DRAMs too; found when first asked for."""

    def __init__(self, problem: Problem, tables: OptionTables) -> None:
        self._machine = problem.machine
        self._drams = {dram.index for dram in problem.machine.drams}
        self._tables = tables
        self._routes = routes_of(problem.machine)
        self.shortest = cache(self._shortest)

    def _shortest(
        self, what: SliceIdx, source: MemoryIdx, targets: tuple[MemoryIdx, ...], is_part: bool
    ) -> TransferOption | None:
        """Return the option of the fewest cycles for a slice; ``None`` if no engine can send it.

        Parameters
        ----------
        targets
            Several for a multicast; no DRAM is one of them then.
        is_part
            Whether it is copied out of the whole buffer.
        """
        options = self._options(what, source, targets, is_part)
        return min(options, key=lambda one: one.cycles, default=None)

    def _options(
        self, what: SliceIdx, source: MemoryIdx, targets: tuple[MemoryIdx, ...], is_part: bool
    ) -> Iterator[TransferOption]:
        route = multicast_route(self._routes, source, targets)
        is_multicast = len(targets) > 1
        if route is None or source in targets or (is_multicast and self._drams & {*targets}):
            return
        machine, tables = self._machine, self._tables
        form = PART if is_part else WHOLE
        if self._drams & {source, targets[0]}:
            form = AT_PLACE
        first_link = tables.first_engine + len(machine.engines)
        links = [first_link + link for link in route.links]
        for index in self._routes.engines_for(source, targets[0]):
            engine = machine.engines[index]
            if is_multicast and not engine.multicast:
                continue
            if not all(engine.serves(source, target) for target in targets):
                continue
            rate = int(transfer_rate(engine, route) * tables.scale)
            taken = EngineUse(index, engine.setup + route.latency, rate)
            cycles = int(_cycles(tables, taken, what, form))
            if cycles > 0:
                resources = tables.first_engine + index, *links
                yield TransferOption(cycles, resources, (1, *(rate for _ in links)))
