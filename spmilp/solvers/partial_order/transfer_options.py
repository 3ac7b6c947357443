"""How scratchpads may send each other slices: engines, links, cycles. Compiled."""

from typing import NamedTuple

from spmilp.compiled import part
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.machine_tables import MOST_MEMORIES_WITH_ALL_PAIRS, machine_tables
from spmilp.solvers.kernels.problem_tables import problem_tables
from spmilp.solvers.kernels.records import NONE, ONE, ZERO, Ints, Table
from spmilp.solvers.kernels.timeline import Timeline, earliest_gap, occupy
from spmilp.solvers.partial_order.from_plan import pools_of
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.units import Cycles, MemoryIdx, SliceIdx


class OptionTables(NamedTuple):
    """The ways between memories that are no DRAMs, as the list scheduler has them.

    Attributes
    ----------
    pair_at
        The row of ``pairs`` for each source and destination; -1 where nothing leads.
    pairs, ways, links
        Of each pair the ways, one for each engine, and the links of its route.
    limits
        Of each engine: what its transfers may be.
    slices
        What is known of each slice.
    scale
        The unit of rates: bytes per cycle, times this.
    first_engine
        The resource of a schedule that is engine 0; the others follow, then the links.
    """

    pair_at: Ints
    pairs: Table
    ways: Table
    links: Ints
    limits: Table
    slices: Table
    scale: int
    first_engine: int


def option_tables_of(problem: Problem, plan: Plan) -> OptionTables:
    """Return the ways between scratchpads; in large machines, those that a plan takes."""
    machine = problem.machine
    drams = {dram.index for dram in machine.drams}
    inner = [memory.index for memory in machine.memories if memory.index not in drams]
    pairs: set[tuple[MemoryIdx, MemoryIdx]]
    if len(inner) <= MOST_MEMORIES_WITH_ALL_PAIRS:
        pairs = {(one, other) for one in inner for other in inner if one != other}
    else:
        memory = [stay.memory for stay in plan.residencies]
        moved = {(memory[m.source], memory[to]) for m in plan.transfers for to in m.destinations}
        pairs = {pair for pair in moved if not drams.intersection(pair)}
    tables = machine_tables(machine, Routes(machine), pairs)
    return OptionTables(
        pair_at=tables.pair_at,
        pairs=tables.pairs,
        ways=tables.options,
        links=tables.links,
        limits=tables.resources,
        slices=problem_tables(problem).slices,
        scale=tables.scale,
        first_engine=len(pools_of(machine)),
    )


@part
def earliest_option(
    schedule: PartialOrderSchedule,
    options: OptionTables,
    line: Timeline,
    pair: int,
    what: int,
    ready: int,
    by: int,
    is_part: bool,
) -> tuple[int, int, int]:
    """Return way, start and end of the copy of a slice that ends first; way -1 if none is in time.

    Parameters
    ----------
    ready, by
        Cycles between which it is made.
    is_part
        Whether it is copied out of the whole buffer.
    """
    best, best_start, best_end = NONE, ZERO, by + 1
    for way in range(options.pairs[pair].options_from, options.pairs[pair].options_to):
        cycles = _cycles(options, way, what, is_part)
        if cycles == 0 or ready + cycles >= best_end:
            continue
        start = _first_start(schedule, options, line, pair, way, ready, cycles)
        if start + cycles < best_end:
            best, best_start, best_end = way, start, start + cycles
    return best, best_start, best_end


@part
def _cycles(options: OptionTables, way: int, what: int, is_part: bool) -> int:
    """Return the cycles of a copy; 0 if the engine cannot make it."""
    taken, entry = options.ways[way], options.slices[what]
    limits = options.limits[taken.engine]
    dimensions = entry.from_parent if is_part else ONE
    offset = entry.offset_in_parent if is_part else ZERO
    if entry.bytes > limits.longest or dimensions > limits.dimensions:
        return ZERO
    if offset % limits.congruence != 0:
        return ZERO
    cycles: int = taken.fixed + (entry.bytes * options.scale + taken.rate - 1) // taken.rate
    return cycles


@part
def _first_start(
    schedule: PartialOrderSchedule,
    options: OptionTables,
    line: Timeline,
    pair: int,
    way: int,
    ready: int,
    cycles: int,
) -> int:
    """Return the first cycle at which the engine and every link of the route have room."""
    taken, route = options.ways[way], options.pairs[pair]
    engine = options.first_engine + taken.engine
    start = ready
    while True:
        asked = start
        start = earliest_gap(line, engine, start, cycles, schedule.capacity[engine] - 1)
        for entry in range(route.links_from, route.links_to):
            link = options.first_engine + options.links[entry]
            spare = schedule.capacity[link] - taken.rate
            start = earliest_gap(line, link, start, cycles, spare)
        if start == asked:
            return start


@part
def hold_option(
    options: OptionTables, line: Timeline, pair: int, way: int, start: int, end: int, sign: int
) -> None:
    """Take the engine and the links of a way, or give them back with ``sign`` -1."""
    taken, route = options.ways[way], options.pairs[pair]
    occupy(line, options.first_engine + taken.engine, start, end, sign)
    for entry in range(route.links_from, route.links_to):
        link = options.first_engine + options.links[entry]
        occupy(line, link, start, end, sign * taken.rate)


class TransferOption(NamedTuple):
    """A transfer's cycles, and its engine and links with what it holds of each, as in schedules."""

    cycles: Cycles
    resources: tuple[int, ...]
    amounts: tuple[int, ...]


class _Service(NamedTuple):
    engine: int
    fixed: Cycles
    rate: int


class TransferOptions:
    """The ways between any two memories, found when first asked for."""

    def __init__(self, problem: Problem, options: OptionTables) -> None:
        self._machine = problem.machine
        self._drams = {dram.index for dram in problem.machine.drams}
        self._options = options
        self._routes = Routes(problem.machine)
        self._shortest: dict[
            tuple[SliceIdx, MemoryIdx, MemoryIdx, bool], TransferOption | None
        ] = {}
        self._found: dict[tuple[MemoryIdx, MemoryIdx], tuple[list[_Service], list[int]]] = {}

    def shortest(
        self, what: SliceIdx, source: MemoryIdx, target: MemoryIdx, *, is_part: bool
    ) -> TransferOption | None:
        """Return the way of the fewest cycles for a slice; ``None`` if no engine can take it.

        Parameters
        ----------
        is_part
            Whether it is copied out of the whole buffer.
        """
        key = what, source, target, is_part
        if key not in self._shortest:
            self._shortest[key] = self._find(*key)
        return self._shortest[key]

    def _find(
        self, what: SliceIdx, source: MemoryIdx, target: MemoryIdx, is_part: bool
    ) -> TransferOption | None:
        services, links = self._between(source, target)
        entry = self._options.slices[what]
        dimensions, offset = 1, 0
        if source in self._drams or target in self._drams:
            dimensions, offset = int(entry.at_place), int(entry.offset_at_place)
        elif is_part:
            dimensions, offset = int(entry.from_parent), int(entry.offset_in_parent)
        size = int(entry.bytes)
        best: TransferOption | None = None
        for service in services:
            limits = self._options.limits[service.engine]
            if size > limits.longest or dimensions > limits.dimensions:
                continue
            if offset % limits.congruence != 0:
                continue
            cycles = service.fixed - (-size * self._options.scale // service.rate)
            if best is None or cycles < best.cycles:
                first = self._options.first_engine
                best = TransferOption(
                    cycles,
                    (first + service.engine, *(first + link for link in links)),
                    (1, *(service.rate for _ in links)),
                )
        return best

    def _between(self, source: MemoryIdx, target: MemoryIdx) -> tuple[list[_Service], list[int]]:
        pair = source, target
        if pair not in self._found:
            self._found[pair] = self._look_up(source, target)
        return self._found[pair]

    def _look_up(self, source: MemoryIdx, target: MemoryIdx) -> tuple[list[_Service], list[int]]:
        machine, scale = self._machine, self._options.scale
        route = self._routes.between(source, target)
        if route is None or source == target:
            return [], []
        services = []
        for index in self._routes.engines_for(source, target):
            engine = machine.engines[index]
            rate = engine.rate if route.rate is None else min(engine.rate, route.rate)
            services.append(_Service(index, engine.setup + route.latency, int(rate * scale)))
        return services, [len(machine.engines) + link for link in route.links]
