"""From the scheduler's tables to the parts of a plan, and to the quantities of the schedule."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spmilp.bounds.best import Bound
from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import Routes, multicast_route, routes_of
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.intervals import least_free_numbers
from spmilp.solvers.kernels.dram import dram_addresses
from spmilp.solvers.kernels.records import NONE, SET_ASIDE, Ints, Table
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.units import Cycles, MemoryIdx, SliceIdx


def plan_of(
    problem: Problem,
    state: ScheduleState,
    bound: Bound,
    solver: str,
    options: tuple[tuple[str, str], ...],
) -> Plan:
    """Return a finished schedule as a plan.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    rows = state.made_residencies()
    kept = np.flatnonzero(_was_filled(problem, rows))
    number = np.full(len(rows) + 1, NONE, np.int64)
    number[kept] = np.arange(len(kept))
    tensors, residencies = dram_addresses(
        problem, list(_residencies(problem, rows[kept], state.makespan()))
    )
    placements = tuple(_placements(state, number))
    transfers = tuple(_transfers(routes_of(problem.machine), state, number))
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


def _was_filled(problem: Problem, rows: Any) -> Any:
    """Say which residencies held something: a task that began again left some that did not."""
    starts = np.array([buffer.starts_in is not None for buffer in problem.buffers] + [False])
    whole = np.where(
        (rows["slice"] >= 0) & (rows["slice"] < len(problem.buffers)), rows["slice"], -1
    )
    initial = starts[whole] & (rows["start"] == 0) & (rows["valid"] == 0)
    filled = (rows["filled_by_task"] != NONE) | (rows["filled_by_transfer"] != NONE)
    return filled | initial | (rows["slice"] == NONE)


def _residencies(problem: Problem, rows: Table, makespan: Cycles) -> Iterator[Residency]:
    names = ("slice", "memory", "offset", "bytes", "start", "end")
    fillers = ("filled_by_task", "filled_by_transfer")
    for index, row in enumerate(_values(rows, *names, *fillers)):
        held, memory, offset, size, start, end, task, transfer = row
        slice_ = _optional(held)
        yield Residency(
            index=index,
            slice=slice_,
            memory=memory,
            offset=offset,
            bytes=size,
            start=start,
            end=max(makespan if _stays(problem, slice_, memory) else end, start + 1),
            filled_by_task=_optional(task),
            filled_by_transfer=_optional(transfer),
        )


def _stays(problem: Problem, slice_: SliceIdx | None, memory: MemoryIdx) -> bool:
    """Say whether a residency lasts until all ends, whatever uses it last."""
    if slice_ is None or slice_ >= len(problem.buffers):
        return False
    buffer = problem.buffers[slice_]
    in_dram_from_the_start = buffer.starts_in == memory and buffer.place is not None
    return buffer.ends_in == memory or in_dram_from_the_start


def _placements(state: ScheduleState, number: Ints) -> Iterator[Placement]:
    served = number[state.reads["served_by"]].tolist()
    held = number[state.writes["held_by"]].tolist()
    scratch = number[state.tasks["scratch"]].tolist()
    names = ("core", "start", "end", "reads_from", "reads_to", "writes_from", "writes_to")
    for index, row in enumerate(_values(state.tasks, *names)):
        core, start, end, reads_from, reads_to, writes_from, writes_to = row
        yield Placement(
            task=index,
            core=core,
            start=start,
            end=end,
            reads=tuple(served[reads_from:reads_to]),
            writes=tuple(held[writes_from:writes_to]),
            scratch=_optional(scratch[index]),
        )


def _transfers(routes: Routes, state: ScheduleState, number: Ints) -> Iterator[Transfer]:
    names = ("slice", "source", "engine", "start", "end")
    moves = list(_values(state.made_transfers(), *names))
    destinations = _destinations(state)
    # The engine never has more transfers at a time than channels.
    channels = least_free_numbers((engine, start, end) for *_, engine, start, end in moves)
    memory = state.residencies["memory"].tolist()
    new_number = number.tolist()
    for index, (slice_, source, engine, start, end) in enumerate(moves):
        filled = destinations[index]
        ends = [memory[one] for one in filled]
        route = (
            routes.between(memory[source], ends[0])
            if len(ends) == 1
            else multicast_route(routes, memory[source], ends)
        )
        yield Transfer(
            index=index,
            slice=slice_,
            source=new_number[source],
            destinations=tuple(new_number[one] for one in filled),
            engine=engine,
            channel=channels[index],
            start=start,
            end=end,
            route=route.links if route else (),
        )


def _destinations(state: ScheduleState) -> list[list[int]]:
    """Return the residencies that each transfer fills."""
    found: list[list[int]] = [[] for _ in range(len(state.made_transfers()))]
    for residency, move in enumerate(state.made_residencies()["filled_by_transfer"].tolist()):
        if move != NONE:
            found[move].append(residency)
    return found


def _values(rows: Table, *fields: str) -> Iterator[tuple[int, ...]]:
    """Yield the fields of each row as plain numbers, which are quicker to read than records."""
    return zip(*(rows[field].tolist() for field in fields), strict=True)


def _optional(value: int) -> int | None:
    return None if value == NONE else value


class Scorer:
    """Values schedules of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        kinds = len(problem.machine.kinds)
        energies = [[one or 0 for one in task.energy or (0,) * kinds] for task in problem.tasks]
        self._energies = np.array(energies, np.int64).reshape(len(problem.tasks), kinds)
        self._is_spm = np.array([one.kind is MemoryKind.SPM for one in problem.machine.memories])
        machine = problem.machine
        self._moves_take_energy = any(one.energy_per_byte for one in machine.memories) or any(
            one.energy_per_byte for one in machine.links
        )
        self._per_byte: dict[tuple[int, int], int] = {}
        self._per_byte_further: dict[tuple[MemoryIdx, tuple[MemoryIdx, ...]], int] = {}
        self._measures = {
            Quantity.MAKESPAN: ScheduleState.makespan,
            Quantity.DRAM_TRAFFIC: self._dram_traffic,
            Quantity.ENERGY: self._energy,
            Quantity.PEAK_SPM: self._peak_spm,
        }

    def __call__(self, state: ScheduleState) -> tuple[int, ...]:
        """Return the schedule's quantities in the problem's order; less is better."""
        return tuple(self._measures[quantity](state) for quantity in self._problem.objective.order)

    def _dram_traffic(self, state: ScheduleState) -> int:
        is_dram = state.memories["is_dram"] == 1
        moves = state.made_transfers()
        memory = state.residencies["memory"]
        touches = is_dram[memory[moves["source"]]] | is_dram[memory[moves["destination"]]]
        return int(state.slices["bytes"][moves["slice"]][touches].sum())

    def _energy(self, state: ScheduleState) -> int:
        kind = state.cores["kind"][state.tasks["core"]]
        tasks = int(self._energies[np.arange(kind.size), kind].sum())
        moves = state.made_transfers()
        memory = state.residencies["memory"]
        memories = len(state.memories)
        ends = memory[moves["source"]] * memories + memory[moves["destination"]]
        used, of_pair = np.unique(ends, return_inverse=True)
        total = np.zeros(used.size, np.int64)
        np.add.at(total, of_pair, state.slices["bytes"][moves["slice"]])
        pairs = (divmod(pair, memories) for pair in used.tolist())
        moved = zip(pairs, total.tolist(), strict=True)
        first = sum(self._energy_per_byte(state, pair) * count for pair, count in moved)
        return tasks + first + self._energy_of_further_destinations(state)

    def _energy_of_further_destinations(self, state: ScheduleState) -> int:
        """Return what multicasts take beyond the transfer to the first destination of each."""
        if not self._moves_take_energy:
            return 0
        filled_by = state.made_residencies()["filled_by_transfer"]
        count = np.bincount(filled_by[filled_by != NONE], minlength=len(state.made_transfers()))
        further = np.flatnonzero((filled_by != NONE) & (count > 1)[filled_by])
        ends: dict[int, list[int]] = {}
        for residency, move in zip(further.tolist(), filled_by[further].tolist(), strict=True):
            ends.setdefault(move, []).append(residency)
        total, memory = 0, state.residencies["memory"]
        moves = state.made_transfers()[np.array(list(ends), np.int64)]
        sources, size = memory[moves["source"]], state.slices["bytes"][moves["slice"]]
        for source, some, bytes_ in zip(
            sources.tolist(), ends.values(), size.tolist(), strict=True
        ):
            per_byte = self._energy_per_byte_further(state, source, tuple(memory[some].tolist()))
            total += per_byte * bytes_
        return total

    def _energy_per_byte_further(
        self, state: ScheduleState, source: MemoryIdx, ends: tuple[MemoryIdx, ...]
    ) -> int:
        """Return what a byte of a multicast takes beyond the way to its first destination."""
        if (source, ends) not in self._per_byte_further:
            machine = self._problem.machine
            rows = [state.pairs[int(state.pair_at[source, end])] for end in ends]
            links = [{*state.links[row.links_from : row.links_to].tolist()} for row in rows]
            found = sum(machine.memories[end].energy_per_byte or 0 for end in ends[1:])
            for link in set[int]().union(*links) - links[0]:
                found += machine.links[link - len(machine.engines)].energy_per_byte or 0
            self._per_byte_further[source, ends] = found
        return self._per_byte_further[source, ends]

    def _energy_per_byte(self, state: ScheduleState, pair: tuple[int, int]) -> int:
        if pair not in self._per_byte:
            machine = self._problem.machine
            row = state.pairs[int(state.pair_at[pair])]
            links = state.links[row["links_from"] : row["links_to"]] - len(machine.engines)
            ends = sum(machine.memories[memory].energy_per_byte or 0 for memory in pair)
            route = sum(machine.links[int(link)].energy_per_byte or 0 for link in links)
            self._per_byte[pair] = ends + route
        return self._per_byte[pair]

    def _peak_spm(self, state: ScheduleState) -> int:
        rows = state.made_residencies()
        rows = rows[rows["slice"] != SET_ASIDE]
        return int((rows["offset"] + rows["bytes"])[self._is_spm[rows["memory"]]].max(initial=0))
