"""From the scheduler's tables to decisions, to their quantities, and to a plan."""

import numpy as np
from numpy.typing import NDArray

from spmilp.bounds.best import Bound
from spmilp.cached import cached
from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import multicast_route, routes_of
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.schedule.kernels.addresses import dram_addresses
from spmilp.solvers.schedule.kernels.plan_columns import (
    PlanColumns,
    buffer_columns,
    lists_in,
    placements_of,
    residencies_of,
    transfers_of,
)
from spmilp.solvers.schedule.kernels.records import (
    NONE,
    Ints,
    Rows,
    Table,
    numbers,
    owners_of,
    ranges_of,
    rows_from_pairs,
    rows_of,
)
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState
from spmilp.solvers.schedule.kernels.tables import next_towards_dram
from spmilp.units import Cycles


def plan_of(
    problem: Problem,
    columns: PlanColumns,
    bound: Bound,
    solver: str,
    options: tuple[tuple[str, str], ...],
) -> Plan:
    """Return decisions as a plan, once offsets outside DRAM are known.

    Raises a ``DoesNotFitError`` if a bounded DRAM is too small for the tensors and what is spilled
    to it.
    """
    tensors, residencies = dram_addresses(problem, residencies_of(columns))
    placements, transfers = placements_of(columns), transfers_of(problem.machine, columns)
    measures = measure(problem, placements, residencies, transfers)
    return Plan(
        placements=placements,
        residencies=tuple(residencies),
        transfers=transfers,
        tensors=tensors,
        claim=claim_of(measures, bound.value, bound.name),
        solver=solver,
        options=options,
    )


def columns_of(problem: Problem, state: ScheduleState) -> PlanColumns:
    """Return what a finished schedule decides. Offsets in DRAM are yet to be given out.

    Where addresses are open, all offsets are yet to be found: those here lie apart from each other,
    whatever the memory's size, but for residencies that overwrite others in place.
    """
    tasks, moves = state.tasks, state.made_transfers()
    rows = state.made_residencies()
    kept = np.flatnonzero(_was_filled(problem, rows))
    number = np.full(len(rows) + 1, NONE, np.int64)
    number[kept] = np.arange(len(kept))
    rows = rows[kept]
    return PlanColumns(
        core=tasks["core"].copy(),
        scratch=number[tasks["scratch"]],
        start=np.concatenate((tasks["start"], moves["start"])),
        end=np.concatenate((tasks["end"], moves["end"])),
        sent=moves["sent"].copy(),
        reads=_reads(state, number),
        fills=_fills(state, number),
        moved=moves["slice"].copy(),
        engine=moves["engine"].copy(),
        routes=_routes(problem, state),
        slice=rows["slice"].copy(),
        memory=rows["memory"].copy(),
        offset=_apart(rows, number) if state.is_open else rows["offset"].copy(),
        bytes=rows["bytes"].copy(),
        first=rows["start"].copy(),
        last=_ends(problem, rows, state.makespan()),
    )


def _apart(rows: Table, number: Ints) -> Ints:
    """Return an offset for each residency, where no other is but those that overwrite it."""
    size = rows["bytes"]
    offset: Ints = np.cumsum(size) - size
    overwritten = number[rows["overwrites"]]
    for later in np.flatnonzero(overwritten != NONE).tolist():
        offset[later] = offset[overwritten[later]]
    return offset


def _was_filled(problem: Problem, rows: Table) -> NDArray[np.bool_]:
    """Say which residencies held something; tasks that were scheduled anew left some empty."""
    is_whole = (rows["slice"] >= 0) & (rows["slice"] < len(problem.buffers))
    starts = buffer_columns(problem).starts_in[np.where(is_whole, rows["slice"], NONE)] != NONE
    initial = is_whole & starts & (rows["start"] == 0) & (rows["valid"] == 0)
    filled = (rows["filled_by_task"] != NONE) | (rows["filled_by_transfer"] != NONE)
    held: NDArray[np.bool_] = filled | initial | (rows["slice"] == NONE)
    return held


def _ends(problem: Problem, rows: Table, makespan: Cycles) -> Ints:
    """Return the end of each residency; outputs, and what DRAM holds, last until all ends."""
    buffers = buffer_columns(problem)
    is_whole = (rows["slice"] >= 0) & (rows["slice"] < len(problem.buffers))
    buffer = np.where(is_whole, rows["slice"], NONE)
    at_home = (buffers.starts_in[buffer] == rows["memory"]) & (buffers.tensor[buffer] != NONE)
    stays = is_whole & (at_home | (buffers.ends_in[buffer] == rows["memory"]))
    ends: Ints = np.maximum(np.where(stays, makespan, rows["end"]), rows["start"] + 1)
    return ends


def _reads(state: ScheduleState, number: Ints) -> Rows:
    """Return what each task reads, then the source of each transfer."""
    served, sources = number[state.reads["served_by"]], number[state.made_transfers()["source"]]
    begin = np.concatenate((state.tasks["reads_from"], state.tasks["reads_to"][-1:]))
    behind = served.size + np.arange(1, sources.size + 1)
    return Rows(np.concatenate((begin, behind)), np.concatenate((served, sources)))


def _fills(state: ScheduleState, number: Ints) -> Rows:
    """Return what each task writes, with its scratch, then what each transfer fills."""
    tasks, count = state.tasks, len(state.tasks) + len(state.made_transfers())
    writers = np.repeat(np.arange(len(tasks)), tasks["writes_to"] - tasks["writes_from"])
    with_scratch = np.flatnonzero(tasks["scratch"] != NONE)
    moves, filled = _filled_by_moves(state)
    owners = np.concatenate((writers, with_scratch, len(tasks) + moves))
    held = (state.writes["held_by"], tasks["scratch"][with_scratch], filled)
    return rows_from_pairs(owners, number[np.concatenate(held)], count)


def _filled_by_moves(state: ScheduleState) -> tuple[Ints, Ints]:
    """Return transfers and the residencies that they fill, by residency."""
    filled_by = state.made_residencies()["filled_by_transfer"]
    filled = np.flatnonzero(filled_by != NONE)
    return filled_by[filled], filled


def _routes(problem: Problem, state: ScheduleState) -> Rows:
    """Return the links of the route of each transfer."""
    transfers, memory = state.made_transfers(), state.residencies["memory"]
    source, first = memory[transfers["source"]], memory[transfers["destination"]]
    pairs = state.pairs[state.pair_at[source * state.rows.memories + first]]
    links = state.links - len(problem.machine.engines)
    single = ranges_of(links, pairs["links_from"], pairs["links_to"] - pairs["links_from"])
    moves, filled = _filled_by_moves(state)
    ends = rows_from_pairs(moves, memory[filled], len(transfers))
    several = np.flatnonzero(np.diff(ends.begin) > 1)
    if several.size == 0:
        return single
    found, routes = [*lists_in(single)], routes_of(problem.machine)
    for move in several.tolist():
        route = multicast_route(routes, int(source[move]), ends.values(move))
        found[move] = () if route is None else route.links
    return rows_of(found)


class Scorer:
    """Values decisions about one problem, whose addresses need not be known."""

    def __init__(self, problem: Problem) -> None:
        machine, kinds = problem.machine, len(problem.machine.kinds)
        energies = [[one or 0 for one in task.energy or (0,) * kinds] for task in problem.tasks]
        self._order = problem.objective.order
        self._energies = np.array(energies, np.int64).reshape(len(problem.tasks), kinds)
        self._sizes = numbers(slice_.bytes for slice_ in problem.slices)
        self._kind_of = numbers(core.kind for core in machine.cores)
        self._is_dram = np.array([one.kind is MemoryKind.DRAM for one in machine.memories])
        self._is_spm = np.array([one.kind is MemoryKind.SPM for one in machine.memories])
        self._of_memories = numbers(one.energy_per_byte or 0 for one in machine.memories)
        self._of_links = numbers(one.energy_per_byte or 0 for one in machine.links)

    def __call__(self, columns: PlanColumns, *, has_addresses: bool) -> tuple[int, ...]:
        """Return the quantities in the problem's order; less is better.

        Without addresses the peak is that of the bytes held at one time.
        """
        return tuple(self._measure(quantity, columns, has_addresses) for quantity in self._order)

    def _measure(self, quantity: Quantity, columns: PlanColumns, has_addresses: bool) -> int:
        if quantity is Quantity.MAKESPAN:
            return int(columns.end.max(initial=0))
        if quantity is Quantity.PEAK_SPM and has_addresses:
            there = self._is_spm[columns.memory]
            return int((columns.offset + columns.bytes)[there].max(initial=0))
        if quantity is Quantity.PEAK_SPM:
            return self._held(columns)
        tasks, sizes = columns.tasks, self._sizes[columns.moved]
        owners = np.repeat(np.arange(sizes.size), np.diff(columns.fills.begin[tasks:]))
        sources = columns.reads.items[columns.reads.begin[tasks] :]
        filled = columns.fills.items[columns.fills.begin[tasks] :]
        memory = columns.memory[np.concatenate((sources, filled))]
        moved = np.concatenate((sizes, sizes[owners]))
        if quantity is Quantity.DRAM_TRAFFIC:
            return int(moved[self._is_dram[memory]].sum())
        sent = sizes[owners_of(columns.routes)] * self._of_links[columns.routes.items]
        of_tasks = self._energies[np.arange(tasks), self._kind_of[columns.core]]
        return int(of_tasks.sum() + sent.sum() + (moved * self._of_memories[memory]).sum())

    def _held(self, columns: PlanColumns) -> int:
        there = np.flatnonzero(self._is_spm[columns.memory])
        size, memory = columns.bytes[there], np.tile(columns.memory[there], 2)
        change = np.concatenate((size, -size))
        cycle = np.concatenate((columns.first[there], columns.last[there]))
        # All has left a memory in the end, so the sum begins each one with nothing.
        return int(np.cumsum(change[np.lexsort((change, cycle, memory))]).max(initial=0))


@cached
def can_be_open(problem: Problem) -> bool:
    """Say whether addresses may stay open while tasks are placed: bytes alone are counted.

    All comes from DRAMs without limit then, and leaves scratchpads for one. In a shared memory
    between them too many bytes lie for too long to be packed.
    """
    machine = problem.machine
    above = {next_towards_dram(machine, core.memory) for core in machine.cores}
    drams = {memory.index for memory in machine.drams}
    starts = {buffer.starts_in for buffer in problem.buffers if buffer.starts_in is not None}
    return above | starts <= drams and all(memory.size is None for memory in machine.drams)
