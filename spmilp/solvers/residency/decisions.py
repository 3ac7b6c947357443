"""From a solution to what a plan consists of, one thing after the other in time."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spmilp.solvers.cpsat.decisions import Decisions, Filled, Run
from spmilp.solvers.cpsat.scope import Stay
from spmilp.solvers.cpsat.ways import Way
from spmilp.solvers.residency.addresses import Addresses
from spmilp.solvers.residency.model import Model
from spmilp.solvers.residency.supplies import Supplies
from spmilp.solvers.residency.variables import Spot
from spmilp.solvers.residency.visits import BEGINNING, Home, Reason
from spmilp.units import Bytes, Cycles, EngineIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a model's solution decides.

    Parameters
    ----------
    cost
        What its transfers add to the first quantity.
    offsets
        Of stays and of tasks' scratch, where the model knows addresses.
    """

    decisions: Decisions
    cost: int
    offsets: Mapping[Stay | TaskIdx, Bytes] | None


def read_solution(model: Model, value: Callable[[Any], int]) -> Solution:
    """Read a solution; ``value`` gives the value of an expression."""
    return _Reader(model, value).solution()


class _Reader:
    """Lets everything happen in turn: what comes before each task, the task, what comes after."""

    def __init__(self, model: Model, value: Callable[[Any], int]) -> None:
        self._tables = model.tables
        self._course = model.course
        self._vars = model.variables
        self._addresses = model.addresses
        self._value = value
        self._supplies = Supplies(model.tables)
        self._dram = self._supplies.dram
        self._now: Cycles = 0
        self._cost = 0
        self._runs: dict[TaskIdx, Run] = {}
        self._stay_at: dict[tuple[Home, int], Stay] = {}
        self._at_step: dict[int, list[tuple[Home, Spot]]] = defaultdict(list)
        for home, spots in self._vars.spots.items():
            self._number(home, spots)
        last = len(self._course.order)
        self._lasting = {self._stay_at[home, last] for home, _ in self._at_step[last]}
        self._stays = {
            Stay(buffer.index, self._dram, 0): Filled(
                start=0, end=None, source=None, engine=None, leader=None
            )
            for buffer in self._tables.problem.buffers
            if buffer.starts_in == self._dram
        }

    def solution(self) -> Solution:
        """Return all that is decided; nothing is used that is not there in time."""
        self._are_born(BEGINNING, 0)
        for step, task in enumerate(self._course.order):
            self._bring(step, after=False)
            start = self._now
            self._now += self._tables.cycles_on(task, self._course.pools[task])
            self._runs[task] = Run(pool=self._course.pools[task], start=start, end=self._now)
            self._are_born(step, start)
            self._bring(step, after=True)
        self._bring(len(self._course.order), after=False)
        decisions = Decisions(
            runs=tuple(self._runs[task.index] for task in self._tables.problem.tasks),
            stays=self._stays,
            served=dict(self._served()),
            in_place=tuple(self._in_place()),
            late=frozenset(),
            value=self._cost,
        )
        offsets = None if self._addresses is None else dict(self._offsets(self._addresses))
        return Solution(decisions=decisions, cost=self._cost, offsets=offsets)

    def _number(self, home: Home, spots: list[Spot]) -> None:
        """Number the stays of a slice in a memory; 0 is the one in which it comes into being."""
        number = 0 if spots[0].visit.reason is Reason.BORN else -1
        for spot in spots:
            if not self._value(spot.there):
                continue
            if spot.visit.reason is not Reason.BORN:
                number += spot.came is None or not self._value(spot.came)
            self._stay_at[home, spot.visit.step] = Stay(*home, number)
            self._at_step[spot.visit.step].append((home, spot))

    def _are_born(self, step: int, start: Cycles) -> None:
        """Begin what comes into being at a step, and store what is to be stored of it."""
        for home, spot in self._at_step[step]:
            if spot.visit.reason is not Reason.BORN:
                continue
            born = self._stay_at[home, step]
            self._stays[born] = self._filled(born, start, None, None)
            for slice_ in (home.slice, *self._tables.parts[home.slice]):
                store = self._vars.stores.get(slice_)
                if store is not None and self._value(store.literal):
                    self._move(Stay(slice_, self._dram, 0), born, store.way)

    def _bring(self, step: int, *, after: bool) -> None:
        """Bring what does not come by staying: before the task of the step, or after it."""
        for home, spot in self._at_step[step]:
            if (spot.visit.reason is Reason.PASSES) == after:
                for source, literal in spot.fills.items():
                    if self._value(literal):
                        holder = source.holder
                        given = self._stay_at.get((holder, step), Stay(*holder, 0))
                        self._move(self._stay_at[home, step], given, source.way)

    def _move(self, stay: Stay, source: Stay, way: Way) -> None:
        self._stays[stay] = self._filled(stay, self._now, source, way.engine)
        self._now += way.cycles
        self._cost += self._supplies.cost(way)

    def _filled(
        self, stay: Stay, start: Cycles, source: Stay | None, engine: EngineIdx | None
    ) -> Filled:
        lasts = stay.memory == self._dram or stay in self._lasting
        end = None if lasts else start
        return Filled(start=start, end=end, source=source, engine=engine, leader=None)

    def _served(self) -> Iterator[tuple[tuple[TaskIdx, int], Stay]]:
        memories = self._course.memories(self._tables)
        for task in self._tables.problem.tasks:
            step = self._course.steps[task.index]
            for position, read in enumerate(task.reads):
                buffer = self._tables.problem.slices[read].buffer
                homes = [Home(slice_, memories[task.index]) for slice_ in (read, buffer)]
                there = [home for home in homes if (home, step) in self._stay_at]
                yield (task.index, position), self._stay_at[there[0], step]

    def _in_place(self) -> Iterator[tuple[TaskIdx, Stay, Stay]]:
        for pair, literal in self._vars.takeovers.items():
            if self._value(literal):
                step = self._course.steps[pair.task]
                yield pair.task, self._stay_at[pair.old, step], self._stay_at[pair.new, step]

    def _offsets(self, addresses: Addresses) -> Iterator[tuple[Stay | TaskIdx, Bytes]]:
        memories = self._tables.machine.memories
        for (home, step), stay in self._stay_at.items():
            block = self._value(addresses.offset(home, step))
            yield stay, block * memories[home.memory].alignment
        works_in = self._course.memories(self._tables)
        for task, first in addresses.scratch.items():
            yield task, self._value(first) * memories[works_in[task]].alignment
