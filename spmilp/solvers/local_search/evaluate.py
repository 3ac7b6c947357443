"""The schedule that a candidate leads to, and its value."""

import numpy as np

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.kernels.schedule_state import ScheduleState, Stop
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.kernels.serial.score import Scorer
from spmilp.solvers.local_search.candidate import Candidate, Evaluated
from spmilp.solvers.local_search.problem_index import ProblemIndex
from spmilp.solvers.local_search.sequence import steps_of


class Evaluator:
    """Lets the list scheduler make schedules of candidates, for any number of threads."""

    def __init__(self, problem: Problem, runner: Runner, index: ProblemIndex) -> None:
        self._problem = problem
        self._score = Scorer(problem)
        self._index = index
        self._runner = runner

    def evaluate(
        self, candidate: Candidate, source: str, limit: tuple[int, ...] | None = None
    ) -> Evaluated | None:
        """Return what a candidate leads to; ``None`` without schedule or when it exceeds a limit.

        Parameters
        ----------
        limit
            A score that is still good enough.
        """
        by_makespan = self._problem.objective.first is Quantity.MAKESPAN
        latest = limit[0] if limit is not None and by_makespan else NEVER
        steps = steps_of(self._index, candidate)
        stop, state = self._runner.run(steps, candidate.cores, candidate.weights, latest)
        if stop is not Stop.DONE or (by_makespan and state.makespan() > latest):
            return None
        found = self._score(state)
        if limit is not None and found > limit:
            return None
        return Evaluated(candidate=candidate, score=found, state=state, source=source)

    def fixed(self, order: np.ndarray, state: ScheduleState) -> Candidate:
        """Return the candidate behind a schedule whose cores the scheduler may have chosen."""
        return Candidate(
            order=order,
            cores=state.tasks["core"].copy(),
            leads=np.zeros(self._index.reads.items.size, np.int64),
            weights=state.weights,
        )
