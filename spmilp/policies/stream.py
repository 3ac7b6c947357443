"""Stream: each layer on one set of cores, layer by layer or fused, by a genetic algorithm.

Symons, Mei, Colleman, Houshmand, Karl and Verhelst, "Stream: Design Space Exploration of
Layer-Fused DNNs on Heterogeneous Dataflow Accelerators", IEEE Transactions on Computers 2025, arXiv
2212.10612. The genetic algorithm of its version of 2025-07 is meant; newer ones have a MILP instead
(KULeuven-MICAS/stream, of which no code is used).

What is taken: a layer is allocated to one core or one set of cores, over which its tiles are
spread; a genetic algorithm searches the allocations of all layers together; layers run one after
another, or fused: a tile as soon as what it reads is there, so that little waits in memory.

What it leaves open, or has otherwise, and what is done here:

- The sets are not listed there. Here they are all cores, those of each kind, and neighbours along
  the chip in halves, quarters and so on down to single cores.
- It minimises latency and energy together (NSGA-II). Here a plan has one value, the problem's
  quantities in their order, so that a population sorted by it suffices, without a library.
- Its operators could not be read. Here parents win tournaments of two, layers are exchanged between
  two points, genes are drawn anew at random, and the best of parents and children survive.
- Transfers, addresses and what is evicted are found by serial schedule generation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spmilp.policies.one_after_another import Policy
from spmilp.policies.scheduled import Layers, Schedules
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.assignments import along_the_chip
from spmilp.solvers.schedule.kernels.records import Ints
from spmilp.solvers.schedule.orders import depth_first
from spmilp.units import CoreIdx

POPULATION = 16
FLIPPED = 0.1
"""Chance that a child takes no layers of the other parent, and chance that its order changes."""
DRAWN = 1.5
"""Layers of a child that get another set of cores, on average."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One individual: for each layer the number of its set of cores, and the order of tiles."""

    sets: tuple[int, ...]
    fused: bool


class Stream(Policy):
    """Allocates each layer to a set of cores by a genetic algorithm.

    Generations are counted after the first one; a time limit may end the search before.
    """

    name = "stream"

    def __init__(self, generations: int = 25) -> None:
        self._generations = generations

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the best allocation; a problem without any plan says why."""
        evolution = _Evolution(context, self.name)
        with context.until_interrupted(lambda: evolution.schedules.best is not None):
            evolution.run(self._generations)
        return evolution.result()


class _Evolution:
    def __init__(self, context: SearchContext, name: str) -> None:
        self._problem = context.problem
        self._layers = Layers(context.problem)
        self._sets = core_sets(context.problem)
        self._random = np.random.default_rng(context.options.seed)
        self._scores: dict[Allocation, tuple[int, ...] | None] = {}
        self.schedules = Schedules[Allocation](context, name, self._decided)

    def run(self, generations: int) -> None:
        """Let the best of each generation survive."""
        alive = self._survivors(list(self._first()), None)
        for _ in range(generations):
            if not alive or self.schedules.is_over:
                return
            worst = self._scores[alive[-1]] if len(alive) == POPULATION else None
            children = [self._child(alive) for _ in range(POPULATION)]
            alive = self._survivors([*alive, *children], None if worst is None else worst[0])

    def result(self) -> SolverResult:
        """Return the plan of the best allocation."""
        best = self.schedules.choice or Allocation((), fused=False)
        options = (
            ("allocations", str(len(self._scores))),
            ("order", "fused" if best.fused else "layer by layer"),
            ("core_sets", str(len(set(best.sets)))),
        )
        return self.schedules.result(options)

    def _first(self) -> Iterator[Allocation]:
        """Yield all layers on all cores, each on one core in turn, and sets at random."""
        layers, sets = len(self._layers.work), len(self._sets)
        single = [number for number, cores in enumerate(self._sets) if len(cores) == 1]
        for fused in (False, True):
            yield Allocation((0,) * layers, fused)
            yield Allocation(tuple(single[n % len(single)] for n in range(layers)), fused)
        for place in range(POPULATION - 4):
            drawn = self._random.integers(sets, size=layers)
            yield Allocation(tuple(drawn.tolist()), fused=place % 2 == 1)

    def _survivors(self, some: Sequence[Allocation], most: float | None) -> list[Allocation]:
        """Return the best ones, each once, the first before its equals."""
        found: list[tuple[tuple[int, ...], int, Allocation]] = []
        for place, one in enumerate(dict.fromkeys(some)):
            if one not in self._scores:
                if self.schedules.is_over:
                    break
                self._scores[one] = self.schedules.make(one, most)
            score = self._scores[one]
            if score is not None:
                found.append((score, place, one))
        return [one for *_, one in sorted(found, key=lambda entry: entry[:2])[:POPULATION]]

    def _decided(self, one: Allocation) -> tuple[Ints, Ints]:
        tasks = [
            placed
            for layer, number in enumerate(one.sets)
            for placed in self._layers.spread(layer, self._sets[number])
        ]
        order, cores = self._layers.in_order(tasks)
        return depth_first(self._problem) if one.fused else order, cores

    def _child(self, alive: Sequence[Allocation]) -> Allocation:
        """Return a child of two parents: layers between two points from the other, some drawn."""
        random = self._random
        # The less a place is, the better; the better of two is drawn.
        first, second = random.integers(len(alive), size=(2, 2)).min(axis=1)
        sets, other = np.array(alive[first].sets), np.array(alive[second].sets)
        begin, end = np.sort(random.integers(sets.size + 1, size=2))
        if random.random() >= FLIPPED:
            sets[begin:end] = other[begin:end]
        drawn = random.random(sets.size) < DRAWN / sets.size
        sets[drawn] = random.integers(len(self._sets), size=int(drawn.sum()))
        fused = alive[first].fused ^ bool(random.random() < FLIPPED)
        return Allocation(tuple(sets.tolist()), fused)


def core_sets(problem: Problem) -> tuple[tuple[CoreIdx, ...], ...]:
    """Return the sets that a layer may have: all cores first, each kind's, and neighbours."""
    along = tuple(along_the_chip(problem))
    every = problem.machine.cores
    kinds = (kind.index for kind in problem.machine.kinds)
    found = [along, *(tuple(c for c in along if every[c].kind == kind) for kind in kinds)]
    size = len(along)
    while size > 1:
        size = -(-size // 2)
        found += [along[first : first + size] for first in range(0, len(along), size)]
    return tuple(cores for cores in dict.fromkeys(found) if cores)
