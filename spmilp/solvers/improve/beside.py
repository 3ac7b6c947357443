"""Searches from the best plan of another one, by other seeds, in processes beside it."""

import pickle
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from functools import lru_cache

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.processes import ChildError, Helpers
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Step
from spmilp.solvers.common.context import SearchContext, rows_of

SECONDS_TO_ANSWER = 0.2
"""For a plan to come back from another process."""

LEAST_SECONDS = 3.0
"""Of a search that is worth another process, which takes one or two to start."""

EXCHANGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the time after which all go on from the best plan of any."""

Improve = Callable[[SearchContext], Plan | None]
"""A function of a module that returns a plan that is better than the hint, if it finds one."""


class SearchesBeside:
    """Lets other processes improve the plan that a search has, and hears what they find.

    Parameters
    ----------
    searches
        All of them, with the one that goes on here; each has its own seed.
    """

    def __init__(self, context: SearchContext, searches: int, improve: Improve) -> None:
        self._context, self._improve = context, improve
        self._problem = pickle.dumps(context.problem)
        self._helpers = Helpers(searches - 1)
        self._asked: list[Future[bytes]] = []
        self._seed = context.options.seed

    def __enter__(self) -> "SearchesBeside":
        return self

    def __exit__(self, *_: object) -> None:
        self._helpers.__exit__()

    def begin(self, plan: Plan, until: float) -> None:
        """Let others begin with a plan, until a share of the time is used."""
        clock, pace, rows = self._context.clock, self._context.clock.pace, rows_of(plan)
        needed = SECONDS_TO_ANSWER + pace.seconds(Step.CHECK, rows) + pace.seconds(Step.PLAN, rows)
        seconds = (clock.seconds_left(until) or 0.0) - needed
        for _ in range(self._helpers.number if seconds > LEAST_SECONDS else 0):
            self._seed += 1
            question = pickle.dumps(
                (plan, SolveOptions(time_limit=seconds, seed=self._seed, pace=pace))
            )
            asked = self._helpers.begin(improved, self._improve, self._problem, question)
            self._asked.append(asked)

    def plans(self) -> list[Plan]:
        """Return what others have found that is shorter than where they began, the best first."""
        wait_for(self._asked, self._context.clock.seconds_left())
        plans = [self._plan(one) for one in self._asked if one.done()]
        self._asked.clear()
        return sorted(filter(None, plans), key=lambda plan: plan.claim.makespan)

    def _plan(self, asked: Future[bytes]) -> Plan | None:
        try:
            plan: Plan | None = pickle.loads(asked.result())
            return plan
        except ChildError as error:
            self._context.options.on_warning(f"a worker ended, and lns goes on without it: {error}")
            return None


@lru_cache(1)
def _problem(pickled: bytes) -> Problem:
    problem: Problem = pickle.loads(pickled)
    return problem


def improved(improve: Improve, problem: bytes, question: bytes) -> bytes:
    """Improve a plan, in a child; return it or ``None``, pickled."""
    plan, options = pickle.loads(question)
    return pickle.dumps(improve(SearchContext(_problem(problem), options, plan)))
