"""Where the search stands, and where it looks next."""

from dataclasses import dataclass, field

import numpy as np

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.local_search.candidate import Candidate, Judged
from spmilp.solvers.local_search.critical import critical_tasks
from spmilp.solvers.local_search.problem_index import ProblemIndex

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
    judged: Judged
    others: tuple[Candidate, ...]
    rng: np.random.Generator
    position: Ints = field(init=False)
    critical: Ints = field(init=False)
    ready: Ints = field(init=False)
    idle: Ints = field(init=False)

    def __post_init__(self) -> None:
        order = self.judged.candidate.order
        self.position = np.empty(order.size, np.int64)
        self.position[order] = np.arange(order.size)
        self.critical = critical_tasks(self.index, self.judged.state)
        tasks = self.judged.state.tasks
        before = self.index.before
        self.ready = np.zeros(order.size, np.int64)
        follower = np.repeat(np.arange(order.size), np.diff(before.begins))
        np.maximum.at(self.ready, follower, tasks["end"][before.items])
        by_core = np.lexsort((tasks["start"], tasks["core"]))
        ends = np.where(
            np.diff(tasks["core"][by_core], prepend=-1) == 0, np.roll(tasks["end"][by_core], 1), 0
        )
        self.idle = np.empty(order.size, np.int64)
        self.idle[by_core] = tasks["start"][by_core] - ends

    @property
    def candidate(self) -> Candidate:
        """What the schedule was made from."""
        return self.judged.candidate

    def a_task(self) -> int:
        """Draw a task, most often a critical one."""
        if self.critical.size > 0 and self.rng.random() < SHARE_OF_CRITICAL:
            return int(self.critical[self.rng.integers(self.critical.size)])
        return int(self.rng.integers(self.position.size))

    def an_operator(self) -> Ints:
        """Draw an operator; return its tasks."""
        return self.index.operators[int(self.index.operator_of[self.a_task()])]

    def one_of(self, items: Ints) -> int:
        """Draw one of several items."""
        return int(items[self.rng.integers(items.size)])

    def a_distance(self, scales: tuple[float, ...]) -> float:
        """Draw by how many tasks to move something; ``scales`` are shares of all tasks."""
        scale = max(2.0, self.position.size * scales[int(self.rng.integers(len(scales)))])
        return float(self.rng.normal() * scale)
