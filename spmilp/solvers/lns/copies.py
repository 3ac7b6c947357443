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
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.reading import pools_of
from spmilp.units import MemoryIdx


class Copies(NamedTuple):
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
        The resource of a draft that is engine 0; the others follow, then the links.
    """

    pair_at: Ints
    pairs: Table
    ways: Table
    links: Ints
    limits: Table
    slices: Table
    scale: int
    first_engine: int


def copies_of(problem: Problem, plan: Plan) -> Copies:
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
    return Copies(
        pair_at=tables.pair_at,
        pairs=tables.pairs,
        ways=tables.ways,
        links=tables.links,
        limits=tables.resources,
        slices=problem_tables(problem).slices,
        scale=tables.scale,
        first_engine=len(pools_of(machine)),
    )


@part
def earliest_copy(
    draft: Draft,
    copies: Copies,
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
    for way in range(copies.pairs[pair].ways_from, copies.pairs[pair].ways_to):
        cycles = _cycles(copies, way, what, is_part)
        if cycles == 0 or ready + cycles >= best_end:
            continue
        start = _first_start(draft, copies, line, pair, way, ready, cycles)
        if start + cycles < best_end:
            best, best_start, best_end = way, start, start + cycles
    return best, best_start, best_end


@part
def _cycles(copies: Copies, way: int, what: int, is_part: bool) -> int:
    """Return the cycles of a copy; 0 if the engine cannot make it."""
    taken, entry = copies.ways[way], copies.slices[what]
    limits = copies.limits[taken.engine]
    dimensions = entry.from_parent if is_part else ONE
    offset = entry.offset_in_parent if is_part else ZERO
    if entry.bytes > limits.longest or dimensions > limits.dimensions:
        return ZERO
    if offset % limits.congruence != 0:
        return ZERO
    cycles: int = taken.fixed + (entry.bytes * copies.scale + taken.rate - 1) // taken.rate
    return cycles


@part
def _first_start(
    draft: Draft, copies: Copies, line: Timeline, pair: int, way: int, ready: int, cycles: int
) -> int:
    """Return the first cycle at which the engine and every link of the route have room."""
    taken, route = copies.ways[way], copies.pairs[pair]
    engine = copies.first_engine + taken.engine
    start = ready
    while True:
        asked = start
        start = earliest_gap(line, engine, start, cycles, draft.capacity[engine] - 1)
        for entry in range(route.links_from, route.links_to):
            link = copies.first_engine + copies.links[entry]
            spare = draft.capacity[link] - taken.rate
            start = earliest_gap(line, link, start, cycles, spare)
        if start == asked:
            return start


@part
def hold_way(
    copies: Copies, line: Timeline, pair: int, way: int, start: int, end: int, sign: int
) -> None:
    """Take the engine and the links of a way, or give them back with ``sign`` -1."""
    taken, route = copies.ways[way], copies.pairs[pair]
    occupy(line, copies.first_engine + taken.engine, start, end, sign)
    for entry in range(route.links_from, route.links_to):
        link = copies.first_engine + copies.links[entry]
        occupy(line, link, start, end, sign * taken.rate)
