"""From decisions to the parts of a plan, addresses excepted."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from spmilp.machine.routes import multicast_route, transfer_cycles
from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.solvers.cpsat.decisions import Decisions
from spmilp.solvers.cpsat.scope import Stay
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.variables import Item
from spmilp.solvers.intervals import least_free_numbers
from spmilp.units import Cycles, ResidencyIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a plan; all offsets are still 0.

    Parameters
    ----------
    items
        What of the model each residency is.
    pairs
        ``(task, operand, result)`` that share bytes.
    """

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    items: tuple[Item, ...]
    pairs: tuple[tuple[TaskIdx, ResidencyIdx, ResidencyIdx], ...]


def extract(tables: Tables, decisions: Decisions) -> Draft:
    """Return the parts of the plan that a solution without late uses is."""
    return _Extraction(tables, decisions).draft()


class _Extraction:
    def __init__(self, tables: Tables, decisions: Decisions) -> None:
        self._tables = tables
        self._decisions = decisions
        self._problem = tables.problem
        needed = self._needed()
        self._stays = sorted(needed, key=lambda stay: (self._start(stay), stay))
        self._number = {stay: index for index, stay in enumerate(self._stays)}
        self._moves = self._destinations()
        self._transfer_of = {
            stay: index for index, some in enumerate(self._moves.values()) for stay in some
        }
        self._ends_of_moves = [self._transfer_end(some) for some in self._moves.values()]
        self._until = self._last_uses()

    def draft(self) -> Draft:
        residencies = [self._residency(stay) for stay in self._stays]
        items: list[Item] = list(self._stays)
        scratch: dict[TaskIdx, ResidencyIdx] = {}
        for task in self._problem.tasks:
            if task.scratch:
                scratch[task.index] = len(residencies)
                residencies.append(self._scratch(task.index, len(residencies)))
                items.append(task.index)
        return Draft(
            placements=tuple(self._placements(scratch)),
            residencies=tuple(residencies),
            transfers=tuple(self._transfers()),
            items=tuple(items),
            pairs=tuple(
                (task, self._number[old], self._number[new])
                for task, old, new in self._decisions.in_place
            ),
        )

    def _start(self, stay: Stay) -> Cycles:
        return self._decisions.stays[stay].start

    def _needed(self) -> set[Stay]:
        """Return the stays that the plan needs; what nothing uses is left out."""
        waiting = [*self._decisions.served.values(), *self._written(), *self._outputs()]
        needed: set[Stay] = set()
        while waiting:
            stay = waiting.pop()
            if stay not in needed:
                needed.add(stay)
                source = self._source(stay)
                if source is not None:
                    waiting.append(source)
        return needed

    def _source(self, stay: Stay) -> Stay | None:
        filled = self._decisions.stays[stay]
        if filled.leader is not None:
            filled = self._decisions.stays[filled.leader]
        return filled.source

    def _written(self) -> Iterator[Stay]:
        for task, run in zip(self._problem.tasks, self._decisions.runs, strict=True):
            memory = self._tables.pools[run.pool].memory
            yield from (Stay(buffer, memory, 0) for buffer in task.writes)

    def _outputs(self) -> Iterator[Stay]:
        """Yield, for each buffer with an end, the stay that is kept longest there."""
        for buffer in self._problem.buffers:
            there = [s for s in self._decisions.stays if s[:2] == (buffer.index, buffer.ends_in)]
            lasting = [s for s in there if self._decisions.stays[s].end is None]
            if lasting:
                yield lasting[0]
            elif there:
                yield max(there, key=lambda s: (self._decisions.stays[s].end or 0, s))

    def _destinations(self) -> dict[Stay, list[Stay]]:
        """Return the stays that each transfer fills, by the stay that leads it.

        A leader that is itself of no use is no destination; the others still are.
        """
        found: dict[Stay, list[Stay]] = defaultdict(list)
        for stay in self._stays:
            filled = self._decisions.stays[stay]
            if filled.source is not None:
                found[stay].append(stay)
            elif filled.leader is not None:
                found[filled.leader].append(stay)
        return {leader: sorted(found[leader]) for leader in sorted(found, key=self._order)}

    def _order(self, stay: Stay) -> tuple[Cycles, Stay]:
        return self._start(stay), stay

    def _route(self, stays: list[Stay]) -> tuple[tuple[int, ...], Cycles]:
        """Return the links and cycles of the transfer to some stays."""
        filled = self._leading(stays)
        source = self._source(stays[0])
        memory = source.memory if source is not None else stays[0].memory
        route = multicast_route(self._tables.routes, memory, [stay.memory for stay in stays])
        if route is None or filled is None:
            return (), 0
        size = self._problem.slices[stays[0].slice].bytes
        return route.links, transfer_cycles(self._tables.machine.engines[filled], route, size)

    def _leading(self, stays: list[Stay]) -> int | None:
        filled = self._decisions.stays[stays[0]]
        if filled.leader is not None:
            filled = self._decisions.stays[filled.leader]
        return filled.engine

    def _transfer_end(self, stays: list[Stay]) -> Cycles:
        return self._start(stays[0]) + self._route(stays)[1]

    def _last_uses(self) -> dict[Stay, Cycles]:
        """Return until when each stay is used; outputs until the last end of all."""
        until: dict[Stay, Cycles] = defaultdict(int)
        runs = self._decisions.runs
        for (task, _), stay in self._decisions.served.items():
            until[stay] = max(until[stay], runs[task].end)
        for stay in self._written():
            writer = self._tables.writers[stay.slice]
            if writer is not None:
                until[stay] = max(until[stay], runs[writer].end)
        for stays, end in zip(self._moves.values(), self._ends_of_moves, strict=True):
            source = self._source(stays[0])
            for stay in (*stays, *(() if source is None else (source,))):
                until[stay] = max(until[stay], end)
        makespan = max([0, *(run.end for run in runs), *self._ends_of_moves])
        for stay in self._outputs():
            until[stay] = makespan
        for stay in self._stays:
            if self._is_initial(stay) and self._tables.ways.at_place(stay.slice, stay.memory):
                kept = self._decisions.stays[stay].end
                until[stay] = makespan if kept is None else until[stay]
        return until

    def _is_initial(self, stay: Stay) -> bool:
        """Say whether a stay is the one that is there at cycle 0."""
        whole = stay.slice < len(self._problem.buffers) and stay.number == 0
        return whole and self._problem.buffers[stay.slice].starts_in == stay.memory

    def _residency(self, stay: Stay) -> Residency:
        transfer = self._transfer_of.get(stay)
        start = self._start(stay)
        task = None
        if transfer is None and not self._is_initial(stay):
            task = self._tables.writers[stay.slice]
        return Residency(
            index=self._number[stay],
            slice=stay.slice,
            memory=stay.memory,
            offset=0,
            bytes=self._problem.slices[stay.slice].bytes,
            start=start,
            end=max(self._until[stay], start + 1),
            filled_by_task=task,
            filled_by_transfer=transfer,
        )

    def _scratch(self, task: TaskIdx, index: ResidencyIdx) -> Residency:
        run = self._decisions.runs[task]
        return Residency(
            index=index,
            slice=None,
            memory=self._tables.pools[run.pool].memory,
            offset=0,
            bytes=self._problem.tasks[task].scratch,
            start=run.start,
            end=run.end,
        )

    def _placements(self, scratch: dict[TaskIdx, ResidencyIdx]) -> Iterator[Placement]:
        runs = self._decisions.runs
        cores = least_free_numbers((run.pool, run.start, run.end) for run in runs)
        for task, run, colour in zip(self._problem.tasks, runs, cores, strict=True):
            pool = self._tables.pools[run.pool]
            served = (self._decisions.served[task.index, p] for p in range(len(task.reads)))
            yield Placement(
                task=task.index,
                core=pool.cores[colour],
                start=run.start,
                end=run.end,
                reads=tuple(self._number[stay] for stay in served),
                writes=tuple(self._number[Stay(b, pool.memory, 0)] for b in task.writes),
                scratch=scratch.get(task.index),
            )

    def _transfers(self) -> Iterator[Transfer]:
        moves = list(self._moves.values())
        engines = [self._leading(stays) or 0 for stays in moves]
        starts = [self._start(stays[0]) for stays in moves]
        channels = least_free_numbers(zip(engines, starts, self._ends_of_moves, strict=True))
        for index, stays in enumerate(moves):
            source = self._source(stays[0])
            if source is None:
                continue
            yield Transfer(
                index=index,
                slice=stays[0].slice,
                source=self._number[source],
                destinations=tuple(self._number[stay] for stay in stays),
                engine=engines[index],
                channel=channels[index],
                start=starts[index],
                end=self._ends_of_moves[index],
                route=self._route(stays)[0],
            )
