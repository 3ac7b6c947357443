"""The schedule that moves start from, and what they draw at random."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from spmilp.solvers.kernels.records import Ints, owners_of
from spmilp.solvers.local_search.candidate import Candidate, Evaluated
from spmilp.solvers.local_search.critical import critical_tasks
from spmilp.solvers.local_search.problem_index import ProblemIndex

T = TypeVar("T")

SHARE_OF_CRITICAL = 0.6
"""How often a move looks at a critical task rather than at any."""


@dataclass(slots=True, kw_only=True, eq=False)
class NeighbourhoodState:
    """The schedule that moves start from.

    Parameters
    ----------
    others
        Candidates from which a part may be taken over.
    position
        Of each task in the order.
    critical
        Tasks that hold the schedule up, the latest first.
    ready
        For each task the cycle at which all that it follows has ended.
    idle
        For each task the cycles that its core is idle before it.
    """

    index: ProblemIndex
    evaluated: Evaluated
    others: tuple[Candidate, ...]
    rng: np.random.Generator
    position: Ints = field(init=False)
    critical: Ints = field(init=False)
    ready: Ints = field(init=False)
    idle: Ints = field(init=False)

    def __post_init__(self) -> None:
        order = self.evaluated.candidate.order
        self.position = np.empty(order.size, np.int64)
        self.position[order] = np.arange(order.size)
        self.critical = critical_tasks(self.index, self.evaluated.state)
        tasks = self.evaluated.state.tasks
        before = self.index.before
        self.ready = np.zeros(order.size, np.int64)
        np.maximum.at(self.ready, owners_of(before), tasks["end"][before.items])
        by_core = np.lexsort((tasks["start"], tasks["core"]))
        ends = np.where(
            np.diff(tasks["core"][by_core], prepend=-1) == 0, np.roll(tasks["end"][by_core], 1), 0
        )
        self.idle = np.empty(order.size, np.int64)
        self.idle[by_core] = tasks["start"][by_core] - ends

    @property
    def candidate(self) -> Candidate:
        """What the schedule was made from."""
        return self.evaluated.candidate

    def a_task(self) -> int:
        """Draw a task, most often a critical one."""
        if self.critical.size > 0 and self.rng.random() < SHARE_OF_CRITICAL:
            return int(self.critical[self.rng.integers(self.critical.size)])
        return int(self.rng.integers(self.position.size))

    def an_operator(self) -> Ints:
        """Draw an operator; return its tasks."""
        return self.index.operators.row(int(self.index.operator_of[self.a_task()]))

    def one_of(self, items: Ints) -> int:
        """Draw one of several numbers."""
        return int(items[self.rng.integers(items.size)])

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of several things."""
        return items[int(self.rng.integers(len(items)))]

    def unit_of(self, task: int) -> Ints:
        """Return the tasks that belong on one core with a task."""
        return self.index.units.row(int(self.index.unit_of[task]))

    def can_run(self, tasks: Ints, cores: Ints) -> bool:
        """Say whether each of some tasks can run on its core in ``cores``."""
        return all(cores[task] in self.index.able.row(task) for task in tasks.tolist())

    def a_distance(self, scales: tuple[float, ...]) -> float:
        """Draw by how many tasks to move something; ``scales`` are shares of all tasks."""
        scale = max(2.0, self.position.size * self.pick(scales))
        return float(self.rng.normal() * scale)
