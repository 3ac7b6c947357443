"""From decisions to a plan: what is needed of them, until when, and where it lies."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from spmilp.machine.routes import multicast_route, transfer_cycles
from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.solvers.intervals import least_free_numbers
from spmilp.solvers.milp.decisions import Decisions, Filled
from spmilp.solvers.milp.lookup import Lookup
from spmilp.solvers.milp.memory import Scratch
from spmilp.solvers.milp.stays import Stay
from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, ResidencyIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a plan; offsets are still 0.

    Parameters
    ----------
    keys
        What of the model each residency is.
    """

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    keys: tuple[Stay | Scratch, ...]

    def at(self, offsets: Iterable[Bytes]) -> tuple[Residency, ...]:
        """Return the residencies at these offsets."""
        pairs = zip(self.residencies, offsets, strict=True)
        return tuple(replace(one, offset=offset) for one, offset in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A transfer to one or more stays."""

    stays: tuple[Stay, ...]
    source: Stay
    engine: EngineIdx
    start: Cycles
    end: Cycles
    route: tuple[LinkIdx, ...]


def extract(lookup: Lookup, decisions: Decisions) -> Draft:
    """Return the parts of the plan that a solution without late uses is."""
    return _Extraction(lookup, decisions).draft()


class _Extraction:
    def __init__(self, lookup: Lookup, decisions: Decisions) -> None:
        self._lookup = lookup
        self._problem = lookup.problem
        self._decisions = decisions
        needed = self._needed()
        self._stays = sorted(needed, key=lambda stay: (self._start(stay), stay))
        self._moves = tuple(self._all_moves())
        self._move_of = {
            stay: index for index, move in enumerate(self._moves) for stay in move.stays
        }
        self._until = self._last_uses()
        self._number = {stay: index for index, stay in enumerate(self._stays)}

    def draft(self) -> Draft:
        residencies = [self._residency(stay) for stay in self._stays]
        keys: list[Stay | Scratch] = list(self._stays)
        scratch: dict[TaskIdx, ResidencyIdx] = {}
        for task in self._problem.tasks:
            if task.scratch:
                scratch[task.index] = len(residencies)
                residencies.append(self._scratch(task.index, len(residencies)))
                keys.append(Scratch(task=task.index, memory=residencies[-1].memory))
        return Draft(
            placements=tuple(self._placements(scratch)),
            residencies=tuple(residencies),
            transfers=tuple(self._transfers()),
            keys=tuple(keys),
        )

    def _filled(self, stay: Stay) -> Filled:
        return self._decisions.stays[stay]

    def _start(self, stay: Stay) -> Cycles:
        return self._filled(stay).start

    def _needed(self) -> set[Stay]:
        """Return the stays that the plan needs; what nothing uses is left out."""
        decisions = self._decisions
        waiting = [*decisions.served.values(), *self._written(), *decisions.kept.values()]
        needed: set[Stay] = set()
        while waiting:
            stay = waiting.pop()
            if stay not in needed:
                needed.add(stay)
                source = self._filled(stay).source
                if source is not None:
                    waiting.append(source)
        return needed

    def _written(self) -> Iterator[Stay]:
        for task, run in zip(self._problem.tasks, self._decisions.runs, strict=True):
            memory = self._lookup.tables.pools[run.pool].memory
            yield from (Stay(buffer, memory, 0) for buffer in task.writes)

    def _all_moves(self) -> Iterator[Move]:
        """Yield the transfers, each with the needed ones of the stays that it fills."""
        together: dict[Stay, list[Stay]] = defaultdict(list)
        for stay in self._stays:
            leader = self._filled(stay).leader
            if leader is not None:
                together[leader].append(stay)
        for stays in together.values():
            filled = self._filled(stays[0])
            source, engine = filled.source, filled.engine
            if source is None or engine is None:
                continue
            stays.sort(key=lambda stay: stay.memory)
            memories = [stay.memory for stay in stays]
            route = multicast_route(self._lookup.tables.routes, source.memory, memories)
            if route is None:
                continue
            size = self._problem.slices[stays[0].slice].bytes
            cycles = transfer_cycles(self._lookup.machine.engines[engine], route, size)
            yield Move(
                stays=tuple(stays),
                source=source,
                engine=engine,
                start=filled.start,
                end=filled.start + cycles,
                route=route.links,
            )

    def _last_uses(self) -> dict[Stay, Cycles]:
        """Return until when each stay is used; what is kept, until the last end of all."""
        until: dict[Stay, Cycles] = defaultdict(int)
        runs = self._decisions.runs
        for (task, _), stay in self._decisions.served.items():
            until[stay] = max(until[stay], runs[task].end)
        for stay in self._written():
            writer = self._lookup.tables.writers[stay.slice]
            until[stay] = max(until[stay], 0 if writer is None else runs[writer].end)
        for move in self._moves:
            for stay in (*move.stays, move.source):
                until[stay] = max(until[stay], move.end)
        makespan = max([0, *(run.end for run in runs), *(move.end for move in self._moves)])
        for stay in self._decisions.kept.values():
            until[stay] = max(makespan, self._start(stay) + 1)
        return until

    def _residency(self, stay: Stay) -> Residency:
        transfer, start = self._move_of.get(stay), self._start(stay)
        buffer = self._problem.buffers[self._problem.slices[stay.slice].buffer]
        initial = stay.number == 0 and buffer.starts_in == stay.memory
        task = None if initial or transfer is not None else self._lookup.tables.writers[stay.slice]
        return Residency(
            index=self._number[stay],
            slice=stay.slice,
            memory=stay.memory,
            offset=0,
            bytes=self._problem.slices[stay.slice].bytes,
            start=start,
            end=self._until[stay],
            filled_by_task=task,
            filled_by_transfer=transfer,
        )

    def _scratch(self, task: TaskIdx, index: ResidencyIdx) -> Residency:
        run = self._decisions.runs[task]
        return Residency(
            index=index,
            slice=None,
            memory=self._lookup.tables.pools[run.pool].memory,
            offset=0,
            bytes=self._problem.tasks[task].scratch,
            start=run.start,
            end=run.end,
        )

    def _placements(self, scratch: dict[TaskIdx, ResidencyIdx]) -> Iterator[Placement]:
        runs = self._decisions.runs
        cores = least_free_numbers((run.pool, run.start, run.end) for run in runs)
        for task, run, colour in zip(self._problem.tasks, runs, cores, strict=True):
            pool = self._lookup.tables.pools[run.pool]
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
        channels = least_free_numbers((move.engine, move.start, move.end) for move in self._moves)
        for index, (move, channel) in enumerate(zip(self._moves, channels, strict=True)):
            yield Transfer(
                index=index,
                slice=move.stays[0].slice,
                source=self._number[move.source],
                destinations=tuple(self._number[stay] for stay in move.stays),
                engine=move.engine,
                channel=channel,
                start=move.start,
                end=move.end,
                route=move.route,
            )
