"""From the scheduler's tables to the parts of a plan, and to the quantities of the schedule.

Addresses in DRAM come last: whole tensors first, then what is spilled.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError, Shortage
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.machine.routes import multicast_route, routes_of
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place
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
from spmilp.solvers.schedule.kernels.tables import alignment_of
from spmilp.units import Bytes, Cycles, LinkIdx, MemoryIdx, SliceIdx, align_up


def plan_of(
    problem: Problem,
    columns: PlanColumns,
    bound: Bound,
    solver: str,
    options: tuple[tuple[str, str], ...],
) -> Plan:
    """Return decisions as a plan: :func:`columns_of` a finished schedule, once offsets are known.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    tensors, residencies = dram_addresses(problem, residencies_of(columns))
    placements, transfers = placements_of(columns), transfers_of(columns)
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
        reads=_reads(state, number),
        fills=_fills(state, number),
        moved=moves["slice"].copy(),
        engine=moves["engine"].copy(),
        routes=_routes(problem, state, {}),
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


MulticastRoutes: TypeAlias = dict[tuple[MemoryIdx, ...], tuple[LinkIdx, ...]]
"""The links of multicasts, by the memories at their ends, the source first."""


def _routes(problem: Problem, state: ScheduleState, known: MulticastRoutes) -> Rows:
    """Return the links of the route of each transfer; those of multicasts are kept in ``known``."""
    transfers, memory = state.made_transfers(), state.residencies["memory"]
    source, first = memory[transfers["source"]], memory[transfers["destination"]]
    pairs = state.pairs[state.pair_at[source, first]]
    links = state.links - len(problem.machine.engines)
    single = ranges_of(links, pairs["links_from"], pairs["links_to"] - pairs["links_from"])
    moves, filled = _filled_by_moves(state)
    ends = rows_from_pairs(moves, memory[filled], len(transfers))
    several = np.flatnonzero(np.diff(ends.begin) > 1)
    if several.size == 0:
        return single
    found, routes = [*lists_in(single)], routes_of(problem.machine)
    for move in several.tolist():
        at = int(source[move]), *ends.values(move)
        if at not in known:
            route = multicast_route(routes, at[0], at[1:])
            known[at] = () if route is None else route.links
        found[move] = known[at]
    return rows_of(found)


class Scorer:
    """Values schedules of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        kinds = len(problem.machine.kinds)
        energies = [[one or 0 for one in task.energy or (0,) * kinds] for task in problem.tasks]
        self._energies = np.array(energies, np.int64).reshape(len(problem.tasks), kinds)
        self._is_spm = np.array([one.kind is MemoryKind.SPM for one in problem.machine.memories])
        machine = problem.machine
        self._of_memories = numbers(one.energy_per_byte or 0 for one in machine.memories)
        self._of_links = numbers(one.energy_per_byte or 0 for one in machine.links)
        self._multicast_routes: MulticastRoutes = {}

    def __call__(self, state: ScheduleState) -> tuple[int, ...]:
        """Return the schedule's quantities in the problem's order; less is better."""
        return tuple(self._measure(quantity, state) for quantity in self._problem.objective.order)

    def _measure(self, quantity: Quantity, state: ScheduleState) -> int:
        if quantity is Quantity.MAKESPAN:
            return state.makespan()
        if quantity is Quantity.DRAM_TRAFFIC:
            return self._dram_traffic(state)
        return self._energy(state) if quantity is Quantity.ENERGY else self._peak_spm(state)

    def _dram_traffic(self, state: ScheduleState) -> int:
        is_dram = state.memories["is_dram"] == 1
        moves = state.made_transfers()
        memory = state.residencies["memory"]
        touches = is_dram[memory[moves["source"]]] | is_dram[memory[moves["destination"]]]
        return int(state.slices["bytes"][moves["slice"]][touches].sum())

    def _energy(self, state: ScheduleState) -> int:
        kind = state.cores["kind"][state.tasks["core"]]
        tasks = int(self._energies[np.arange(kind.size), kind].sum())
        if not (self._of_memories.any() or self._of_links.any()):
            return tasks
        moves, memory = state.made_transfers(), state.residencies["memory"]
        size, (fillers, filled) = state.slices["bytes"][moves["slice"]], _filled_by_moves(state)
        routes = _routes(self._problem, state, self._multicast_routes)
        read = size * self._of_memories[memory[moves["source"]]]
        written = size[fillers] * self._of_memories[memory[filled]]
        sent = size[owners_of(routes)] * self._of_links[routes.items]
        return tasks + int(read.sum() + written.sum() + sent.sum())

    def _peak_spm(self, state: ScheduleState) -> int:
        if state.is_open:
            return 0
        rows = state.made_residencies()
        return int((rows["offset"] + rows["bytes"])[self._is_spm[rows["memory"]]].max(initial=0))


class DramAllocator:
    """Gives out addresses of one DRAM from low to high; reuses freed ones for the same size."""

    def __init__(self, memory: Memory, alignment: int) -> None:
        self._memory = memory
        self._alignment = alignment
        self._top: Bytes = 0
        self._returned: dict[Bytes, list[tuple[Cycles, Bytes]]] = {}

    def take(self, size: Bytes, start: Cycles, end: Cycles) -> Bytes:
        """Return an address for ``size`` bytes during ``[start, end)``.

        Calls come in order of ``start``.

        Raises
        ------
        DoesNotFitError
            If the memory has a limit and it is reached.
        """
        size = align_up(size, self._alignment)
        waiting = self._returned.setdefault(size, [])
        if waiting and waiting[0][0] <= start:
            address = heappop(waiting)[1]
        else:
            address = self._above_all(size)
        heappush(waiting, (end, address))
        return address

    def _above_all(self, size: Bytes) -> Bytes:
        address = align_up(self._top, self._alignment)
        for taken in self._memory.reserved:
            if address < taken.end and taken.start < address + size:
                address = align_up(taken.end, self._alignment)
        self._top = address + size
        limit = self._memory.size
        if limit is not None and self._top > limit:
            raise DoesNotFitError(
                f"memory {self._memory.name}: tensors and spilled buffers need {self._top} B > "
                f"{limit} B; use a larger memory or larger scratchpads (fewer spills)",
                Shortage(
                    what="what is spilled",
                    memory=self._memory.name,
                    needed=self._top - limit + (self._memory.usable or 0),
                    usable=self._memory.usable or 0,
                    parts=(),
                ),
                is_proven=False,
            )
        return address


def dram_addresses(
    problem: Problem, residencies: Sequence[Residency]
) -> tuple[tuple[Bytes, ...], list[Residency]]:
    """Return the address of each DRAM tensor, and the residencies with addresses in DRAM too.

    Raises
    ------
    DoesNotFitError
        If a DRAM with a limit is too small.
    """
    end = max((one.end for one in residencies), default=0)
    machine = problem.machine
    allocators = {
        memory.index: DramAllocator(memory, alignment_of(machine, memory.index))
        for memory in machine.drams
    }
    tensors = tuple(allocators[t.memory].take(t.bytes, 0, end + 1) for t in problem.tensors)
    placed = list(residencies)
    for one in sorted(residencies, key=lambda residency: (residency.start, residency.index)):
        if machine.memories[one.memory].kind is not MemoryKind.DRAM or one.slice is None:
            continue
        home = _address_at_place(problem, one.slice, one.memory, tensors)
        if home is None:
            home = allocators[one.memory].take(one.bytes, one.start, one.end)
        placed[one.index] = replace(one, offset=home)
    return tensors, placed


def needs_no_dram_addresses(machine: Machine) -> bool:
    """Say whether addresses in DRAM cannot change times: no DRAM has a limit or cores in it."""
    drams = {dram.index for dram in machine.drams}
    is_worked_in = any(core.memory in drams for core in machine.cores)
    return not is_worked_in and all(dram.size is None for dram in machine.drams)


def _address_at_place(
    problem: Problem, slice_: SliceIdx, memory: MemoryIdx, tensors: Sequence[Bytes]
) -> Bytes | None:
    place = problem.buffers[problem.slices[slice_].buffer].place
    if place is None or problem.tensors[place.tensor].memory != memory:
        return None
    return tensors[place.tensor] + layout_at_place(problem, slice_).offset
