"""From a solution to what a plan consists of, one thing after the other in time."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.decisions import Decisions, Fill, TaskRun
from spmilp.solvers.residency.addresses import Addresses
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.model import Model
from spmilp.solvers.residency.variables import Source, Spot
from spmilp.solvers.residency.visits import BEGINNING, Home
from spmilp.units import Bytes, Cycles, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a model's solution decides.

    Parameters
    ----------
    course
        Which turns the tasks take.
    offsets
        Of stays and of tasks' scratch, where the model knows addresses.
    """

    decisions: Decisions
    course: Course
    offsets: Mapping[CandidateResidency | TaskIdx, Bytes] | None


def read_solution(model: Model, value: Callable[[Any], int]) -> Solution:
    """Read a solution; ``value`` gives the value of an expression."""
    return _Reader(model, value).solution()


class _Reader:
    """Lets everything happen in turn: what comes before each task, the task, what comes after."""

    def __init__(self, model: Model, value: Callable[[Any], int]) -> None:
        self._tables = model.tables
        self._vars = model.variables
        self._addresses = model.addresses
        self._value = value
        self._dram = model.tables.machine.drams[0].index
        self._course = self._read_course()
        self._now: Cycles = 0
        self._runs: dict[TaskIdx, TaskRun] = {}
        self._stay_at: dict[tuple[Home, int], CandidateResidency] = {}
        self._at_step: dict[int, list[tuple[Home, Spot]]] = defaultdict(list)
        for home, spots in self._vars.spots.items():
            self._number(home, spots)
        last = len(self._course.order)
        self._kept = {self._stay_at[home, last] for home in self._vars.visits.kept}
        self._fills = {
            CandidateResidency(buffer.index, self._dram, 0): Fill(start=0)
            for buffer in self._tables.problem.buffers
            if buffer.starts_in == self._dram
        }
        self._initial = frozenset(self._fills)

    def solution(self) -> Solution:
        """Return all that is decided; nothing is used that is not there in time."""
        self._are_born(BEGINNING, 0)
        self._bring(BEGINNING, after=True)
        self._store(BEGINNING)
        for step, task in enumerate(self._course.order):
            self._bring(step, after=False)
            start, pool = self._now, self._course.pools[task]
            self._now += self._tables.cycles_on(task, pool)
            self._runs[task] = TaskRun(pool=pool, start=start, end=self._now)
            self._are_born(step, start)
            self._bring(step, after=True)
            self._store(step)
        self._bring(len(self._course.order), after=False)
        decisions = Decisions(
            runs=tuple(self._runs[task.index] for task in self._tables.problem.tasks),
            fills=self._fills,
            served=dict(self._served()),
            outputs=tuple(self._outputs()),
            lasting=frozenset(k for k in self._initial if self._tables.at_place(*k[:2])),
            in_place=tuple(self._in_place()),
        )
        offsets = None if self._addresses is None else dict(self._offsets(self._addresses))
        return Solution(decisions=decisions, course=self._course, offsets=offsets)

    def _read_course(self) -> Course:
        taken = [run for run, literal in self._vars.runs.items() if self._value(literal)]
        taken.sort(key=lambda run: run.turn.step)
        pools = {run.task: run.turn.pool for run in taken}
        return Course(
            order=tuple(run.task for run in taken),
            pools=tuple(pools[task.index] for task in self._tables.problem.tasks),
        )

    def _number(self, home: Home, spots: list[Spot]) -> None:
        """Number the stays of a slice in a memory; 0 is the one in which it comes into being."""
        number = -1
        for spot in spots:
            if not self._value(spot.there):
                continue
            if spot.came is None or not self._value(spot.came):
                # Where it comes into being at the beginning, but is not needed, 0 is left out.
                number = 0 if self._is_born(home, spot) else max(number + 1, self._first(home))
            self._stay_at[home, spot.visit.step] = CandidateResidency(*home, number)
            self._at_step[spot.visit.step].append((home, spot))

    def _first(self, home: Home) -> int:
        return 1 if home in self._vars.visits.given else 0

    def _is_born(self, home: Home, spot: Spot) -> bool:
        if home in self._vars.visits.given and spot.visit.step == BEGINNING:
            return True
        is_whole = home.slice < len(self._tables.problem.buffers)
        return is_whole and any(self._value(self._vars.runs[run]) for run in spot.visit.writers)

    def _are_born(self, step: int, start: Cycles) -> None:
        for home, spot in self._at_step[step]:
            if self._is_born(home, spot):
                born = self._stay_at[home, step]
                self._fills[born] = Fill(start=start)

    def _bring(self, step: int, *, after: bool) -> None:
        """Bring what does not come by staying; what others pass on at once, first."""
        visits = self._vars.visits
        coming = sorted(self._at_step[step], key=lambda one: visits.is_working(one[0].memory))
        for home, spot in coming:
            for source, literal in (spot.after if after else spot.before).items():
                if self._value(literal):
                    self._move(self._stay_at[home, step], source, step)

    def _store(self, step: int) -> None:
        for store, literal in self._vars.stores.items():
            if store.step == step and self._value(literal):
                self._move(
                    CandidateResidency(store.slice, self._dram, 0),
                    Source(store.holder, store.way),
                    step,
                )

    def _move(self, stay: CandidateResidency, source: Source, step: int) -> None:
        given = self._stay_at.get((source.holder, step), CandidateResidency(*source.holder, 0))
        self._fills[stay] = Fill(start=self._now, source=given, engine=source.way.engine, root=stay)
        self._now += source.way.cycles

    def _outputs(self) -> Iterator[CandidateResidency]:
        yield from self._kept
        for buffer in self._tables.problem.buffers:
            stored = CandidateResidency(buffer.index, self._dram, 0)
            if buffer.ends_in == self._dram and stored in self._fills:
                yield stored

    def _served(self) -> Iterator[tuple[tuple[TaskIdx, int], CandidateResidency]]:
        memories = self._course.memories(self._tables)
        for task in self._tables.problem.tasks:
            step = self._course.steps[task.index]
            for position, read in enumerate(task.reads):
                homes = [Home(s, memories[task.index]) for s in self._vars.visits.related(read)]
                spots = ((home, self._vars.at(home, step)) for home in homes)
                there = [
                    home
                    for home, spot in spots
                    if spot is not None and any(self._value(one) for one in spot.early())
                ]
                yield (task.index, position), self._stay_at[there[0], step]

    def _in_place(self) -> Iterator[tuple[TaskIdx, CandidateResidency, CandidateResidency]]:
        for pair, literal in self._vars.takeovers.items():
            if self._value(literal):
                old, new = (
                    self._stay_at[home, pair.run.turn.step] for home in (pair.old, pair.new)
                )
                yield pair.run.task, old, new

    def _offsets(
        self, addresses: Addresses
    ) -> Iterator[tuple[CandidateResidency | TaskIdx, Bytes]]:
        memories = self._tables.machine.memories
        for (home, step), stay in self._stay_at.items():
            block = self._value(addresses.offset(home, step))
            yield stay, block * memories[home.memory].alignment
        for run, first in addresses.scratch.items():
            if self._value(self._vars.runs[run]):
                memory = self._tables.pools[run.turn.pool].memory
                yield run.task, self._value(first) * memories[memory].alignment
