"""The policy as a solver: simulated annealing over trees of cuts."""

from collections.abc import Iterator

import numpy as np

from spmilp.errors import SpmilpError
from spmilp.policies.scheduled import Layers, Scheduled, Schedules
from spmilp.policies.set.moves import neighbour_of
from spmilp.policies.set.tree import Cut, Tree, cuts_in, tasks_of
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.assignments import along_the_chip

WARMTH = 0.05
"""Part of its value by which a tree may become worse at the first step, on average."""


class Set(Solver):
    """Cuts the network and the chip into parts by a tree, improved by simulated annealing.

    Parameters
    ----------
    steps
        Trees that are tried after the first ones; a time limit may end the search before.
    """

    name = "set"

    def __init__(self, steps: int = 400) -> None:
        self._steps = steps

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the best tree; a problem without any plan says why."""
        if context.misfit:
            return context.infeasible(context.misfit)
        annealing = _Annealing(context, self.name)
        try:
            with context.until_interrupted(lambda: annealing.best is not None):
                annealing.run(self._steps)
            return annealing.result()
        except SpmilpError as error:
            return context.unknown(str(error))


class _Annealing:
    def __init__(self, context: SearchContext, name: str) -> None:
        self._context = context
        self._name = name
        self._layers = Layers(context.problem)
        self._cores = along_the_chip(context.problem)
        self._schedules = Schedules(context)
        self._random = np.random.default_rng(context.options.seed)
        self._tree: Tree = 0
        self._tried = 0
        self.best: Scheduled | None = None

    def run(self, steps: int) -> None:
        """Take the best of the first trees, then go from tree to tree."""
        is_over, random = self._context.clock.is_over, self._random
        for tree in first_trees(len(self._layers.work)):
            if self.best is not None and is_over():
                return
            self._try(tree, None)
        if self.best is None:
            return
        current, tree = self.best.score[0], self._tree
        for step in range(steps):
            if is_over() or self._is_enough():
                return
            warmth = WARMTH * (1.0 - step / steps) ** 2
            other = neighbour_of(tree, random)
            most = current * (1.0 + warmth * random.exponential())
            made = self._try(other, most)
            if made is not None and made.score[0] <= most:
                current, tree = made.score[0], other

    def result(self) -> SolverResult:
        """Return the plan of the best tree."""
        cuts = [cut for _, cut in cuts_in(self._tree)]
        options = (
            ("trees", str(self._tried)),
            ("cuts_in_space", str(sum(cut.spatial for cut in cuts))),
            ("cuts_in_time", str(sum(not cut.spatial for cut in cuts))),
            ("most_rounds", str(max((cut.rounds for cut in cuts), default=1))),
        )
        return self._schedules.result(self.best, self._name, options)

    def _try(self, tree: Tree, most: float | None) -> Scheduled | None:
        """Return the schedule of a tree, and remember it if it is the best."""
        order, cores = self._layers.in_order(tasks_of(tree, self._layers, self._cores))
        made = self._schedules.make(order, cores, most)
        self._tried += 1
        if made is not None and (self.best is None or made.score < self.best.score):
            self.best, self._tree = made, tree
            self._context.report(made.score[0], self._context.fast_bound.value, self._name)
        return made

    def _is_enough(self) -> bool:
        bound = self._context.fast_bound.value
        return self.best is not None and self._context.is_enough(self.best.score[0], bound)


def first_trees(layers: int) -> Iterator[Tree]:
    """Yield layers one after another, and pipelines of so many neighbours after each other."""
    every = tuple(range(layers))
    if layers == 1:
        yield 0
        return
    yield Cut(False, 1, every)
    for size in (2, 4, 8):
        for rounds in (1, 4):
            groups = [every[first : first + size] for first in range(0, layers, size)]
            cuts = [Cut(True, rounds, some) if len(some) > 1 else some[0] for some in groups]
            yield cuts[0] if len(cuts) == 1 else Cut(False, 1, tuple(cuts))
