"""Decisions: what a plan or a solution decides, as plain integers, whatever the model.

:func:`decisions_of` reads them from a plan. :func:`extract` makes a plan of them that has times,
but no addresses yet.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from spmilp.machine.routes import multicast_route, transfer_cycles
from spmilp.plan.memory import pairs_in_place
from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.solvers.exact.formulation.candidates import CandidateResidency, Reading
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.schedule.kernels.plan_columns import least_free_numbers
from spmilp.units import Cycles, EngineIdx, LinkIdx, ResidencyIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task in a pool of cores during ``[start, end)``."""

    pool: int
    start: Cycles
    end: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How a candidate residency that exists comes about.

    It begins at ``start``, with what fills it. ``source`` and ``engine`` are those of the transfer
    that fills it, ``None`` where it is there at cycle 0 or a task writes it. That transfer belongs
    to the residency ``root``: itself, or another destination of the same multicast.
    """

    start: Cycles
    source: CandidateResidency | None = None
    engine: EngineIdx | None = None
    root: CandidateResidency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """A solution.

    ``runs`` are those of the tasks, by index; ``fills`` the candidate residencies that exist;
    ``served`` has the one that serves each ``(task, position)`` of a read. ``outputs`` are the
    residencies in which buffers lie that have to be somewhere at the end, ``lasting`` others that
    are kept until the end of the plan if anything uses them. ``in_place`` are ``(task, operand,
    result)`` that share bytes. ``late`` residencies are used *late*: as a later one of the slice,
    which the model does not have. With any the solution is no plan.
    """

    runs: tuple[TaskRun, ...]
    fills: dict[CandidateResidency, Fill]
    served: dict[tuple[TaskIdx, int], CandidateResidency]
    outputs: tuple[CandidateResidency, ...]
    lasting: frozenset[CandidateResidency] = frozenset()
    in_place: tuple[tuple[TaskIdx, CandidateResidency, CandidateResidency], ...] = ()
    late: frozenset[CandidateResidency] = frozenset()


Item: TypeAlias = CandidateResidency | TaskIdx
"""What has bytes in a memory: a residency, or a task's scratch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPlan:
    """The parts of a plan; all offsets are still 0.

    ``items`` say what of the model each residency is; ``pairs`` are ``(task, operand, result)``
    that share bytes.
    """

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    items: tuple[Item, ...]
    pairs: tuple[tuple[TaskIdx, ResidencyIdx, ResidencyIdx], ...]


def decisions_of(tables: ProblemTables, reading: Reading) -> Decisions:
    """Return what a plan decides; what nothing needs is left out."""
    problem, plan, key = tables.problem, reading.plan, reading.key
    fills: dict[CandidateResidency, Fill] = {}
    for index in reading.in_time():
        one = plan.residencies[index]
        if one.filled_by_transfer is not None:
            move = plan.transfers[one.filled_by_transfer]
            ends = (end for end in move.destinations if end in key)
            fill = Fill(
                start=move.start,
                source=key[move.source],
                engine=move.engine,
                root=key[min(ends, key=lambda end: plan.residencies[end].memory)],
            )
        elif one.filled_by_task is not None:
            fill = Fill(start=plan.placements[one.filled_by_task].start)
        else:
            fill = Fill(start=one.start)
        fills.setdefault(key[index], fill)
    return Decisions(
        runs=tuple(
            TaskRun(pool=pool, start=placement.start, end=placement.end)
            for pool, placement in zip(tables.pools_of_plan(plan), plan.placements, strict=True)
        ),
        fills=fills,
        served={
            (placement.task, position): key[residency]
            for placement in plan.placements
            for position, residency in enumerate(placement.reads)
        },
        outputs=tuple(
            one
            for one in dict.fromkeys(key[residency] for residency in reading.kept)
            if one.slice < len(problem.buffers) and problem.buffers[one.slice].ends_in == one.memory
        ),
        in_place=tuple((task, key[a], key[b]) for task, a, b in pairs_in_place(problem, plan)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A transfer with the residencies that it fills, as far as the plan needs them."""

    targets: tuple[CandidateResidency, ...]
    source: CandidateResidency
    engine: EngineIdx
    start: Cycles
    sent: Cycles
    busy: Cycles
    end: Cycles
    route: tuple[LinkIdx, ...]


def extract(tables: ProblemTables, decisions: Decisions) -> TimedPlan:
    """Return the plan that a solution without late uses is; what nothing uses is left out."""
    return _Extraction(tables, decisions).plan()


class _Extraction:
    def __init__(self, tables: ProblemTables, decisions: Decisions) -> None:
        self._tables = tables
        self._problem = tables.problem
        self._decisions = decisions
        self._needed = sorted(self._find_needed(), key=self._order)
        self._number = {key: index for index, key in enumerate(self._needed)}
        self._moves = tuple(self._all_moves())
        self._move_of = {
            key: index for index, move in enumerate(self._moves) for key in move.targets
        }
        self._until = self._last_uses()

    def plan(self) -> TimedPlan:
        residencies = [self._residency(key) for key in self._needed]
        items: list[Item] = list(self._needed)
        scratch: dict[TaskIdx, ResidencyIdx] = {}
        for task in self._problem.tasks:
            if task.scratch:
                scratch[task.index] = len(residencies)
                residencies.append(self._scratch(task.index, len(residencies)))
                items.append(task.index)
        return TimedPlan(
            placements=tuple(self._placements(scratch)),
            residencies=tuple(residencies),
            transfers=tuple(self._transfers()),
            items=tuple(items),
            pairs=tuple(
                (task, self._number[old], self._number[new])
                for task, old, new in self._decisions.in_place
            ),
        )

    def _fill(self, key: CandidateResidency) -> Fill:
        return self._decisions.fills[key]

    def _order(self, key: CandidateResidency) -> tuple[Cycles, CandidateResidency]:
        return self._fill(key).start, key

    def _find_needed(self) -> set[CandidateResidency]:
        waiting = [*self._decisions.served.values(), *self._written(), *self._decisions.outputs]
        waiting += self._residents()
        needed: set[CandidateResidency] = set()
        while waiting:
            key = waiting.pop()
            if key not in needed:
                needed.add(key)
                source = self._fill(key).source
                if source is not None:
                    waiting.append(source)
        return needed

    def _written(self) -> Iterator[CandidateResidency]:
        for task, run in zip(self._problem.tasks, self._decisions.runs, strict=True):
            memory = self._tables.pools[run.pool].memory
            yield from (CandidateResidency(buffer, memory, 0) for buffer in task.writes)

    def _residents(self) -> Iterator[CandidateResidency]:
        """Yield what is pinned to be resident."""
        for key in self._decisions.fills:
            if self._tables.is_resident(key.slice, key.memory):
                yield key

    def _all_moves(self) -> Iterator[_Move]:
        """Yield the transfers, in order of their starts.

        The root of a multicast that is itself of no use is no destination; the others still are.
        """
        together: dict[CandidateResidency, list[CandidateResidency]] = defaultdict(list)
        for key in self._needed:
            root = self._fill(key).root
            if root is not None:
                together[root].append(key)
        for root in sorted(together, key=self._order):
            targets = tuple(sorted(together[root]))
            fill = self._fill(targets[0])
            source, engine = fill.source, fill.engine
            if source is None or engine is None:
                continue
            memories = [key.memory for key in targets]
            route = multicast_route(self._tables.routes, source.memory, memories)
            if route is None:
                continue
            size = self._problem.slices[root.slice].bytes
            takes = transfer_cycles(self._tables.machine.engines[engine], route, size)
            yield _Move(
                targets=targets,
                source=source,
                engine=engine,
                start=fill.start,
                sent=fill.start + takes.sent,
                busy=fill.start + takes.busy,
                end=fill.start + takes.arrived,
                route=route.links,
            )

    def _last_uses(self) -> dict[CandidateResidency, Cycles]:
        """Return until when each residency is used; outputs until the last end of all."""
        until: dict[CandidateResidency, Cycles] = defaultdict(int)
        runs = self._decisions.runs
        for (task, _), key in self._decisions.served.items():
            until[key] = max(until[key], runs[task].end)
        for key in self._written():
            writer = self._tables.writers[key.slice]
            if writer is not None:
                until[key] = max(until[key], runs[writer].end)
        for key in self._residents():
            ends = (runs[task].end for task in self._tables.readers_of_any(key.slice))
            until[key] = max(until[key], *ends)
        for move in self._moves:
            until[move.source] = max(until[move.source], move.sent)
            for key in move.targets:
                until[key] = max(until[key], move.end)
        makespan = max([0, *(run.end for run in runs), *(move.end for move in self._moves)])
        for key in (*self._decisions.outputs, *self._decisions.lasting):
            until[key] = makespan
        return until

    def _residency(self, key: CandidateResidency) -> Residency:
        transfer, start = self._move_of.get(key), self._fill(key).start
        buffers = self._problem.buffers
        whole = key.slice < len(buffers) and key.number == 0
        initial = whole and buffers[key.slice].starts_in == key.memory
        task = None if initial or transfer is not None else self._tables.writers[key.slice]
        return Residency(
            index=self._number[key],
            slice=key.slice,
            memory=key.memory,
            offset=0,
            bytes=self._problem.slices[key.slice].bytes,
            start=start,
            end=max(self._until[key], start + 1),
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
        for task, run, core in zip(self._problem.tasks, runs, cores, strict=True):
            pool = self._tables.pools[run.pool]
            served = (self._decisions.served[task.index, p] for p in range(len(task.reads)))
            written = (CandidateResidency(b, pool.memory, 0) for b in task.writes)
            yield Placement(
                task=task.index,
                core=pool.cores[core],
                start=run.start,
                end=run.end,
                reads=tuple(self._number[key] for key in served),
                writes=tuple(self._number[key] for key in written),
                scratch=scratch.get(task.index),
            )

    def _transfers(self) -> Iterator[Transfer]:
        channels = least_free_numbers((move.engine, move.start, move.busy) for move in self._moves)
        for index, (move, channel) in enumerate(zip(self._moves, channels, strict=True)):
            yield Transfer(
                index=index,
                slice=move.targets[0].slice,
                source=self._number[move.source],
                destinations=tuple(self._number[key] for key in move.targets),
                engine=move.engine,
                channel=channel,
                start=move.start,
                sent=move.sent,
                end=move.end,
                route=move.route,
            )
