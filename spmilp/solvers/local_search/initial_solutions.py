"""Initial solutions of the search: a hint, the list scheduler's portfolio, its best prefetching."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from spmilp.plan.plan import Plan
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.kernels.records import Ints, numbers
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.list_scheduler.portfolio import FIRST_WEIGHTS, Found
from spmilp.solvers.list_scheduler.schedules import Schedules
from spmilp.solvers.local_search.candidate import (
    Candidate,
    Evaluated,
    Evaluator,
    in_order_of,
    leads_by_share,
)
from spmilp.solvers.local_search.problem_index import ProblemIndex

SHARE_OF_PORTFOLIO = 0.3
"""Of a time limit: the first rules of the portfolio are almost as good as all of them."""
MOST_KEPT = 4
TASKS_KEPT = 8_000
"""Of all candidates that are tried with prefetched loads."""
SHARES = (0.15, 0.3, 0.5, 0.7, -0.15, -0.3, -0.5)


class InitialSolutions:
    """The schedules that the search begins with, one after another."""

    def __init__(self, context: SearchContext, index: ProblemIndex, evaluator: Evaluator) -> None:
        self._context = context
        self._index = index
        self._evaluator = evaluator
        self._schedules = Schedules.of(context)
        self._first: list[tuple[tuple[int, ...], str, Candidate]] = []

    @property
    def reason(self) -> str:
        """Why there is no schedule, where there is none."""
        return self._schedules.reason

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Candidates of the portfolio, the best first; weights apart no two are equal."""
        ranked = sorted(self._first, key=lambda start: start[:2])
        return tuple(candidate for _, _, candidate in ranked)

    def __iter__(self) -> Iterator[Evaluated | None]:
        """Evaluate them one by one."""
        problem, hint = self._context.problem, self._context.hint
        if hint is not None:
            usual = FIRST_WEIGHTS[problem.objective.first]
            yield self._from_hint(candidate_of(self._index, hint, usual))
        for found in self._schedules:
            yield None if found is None else self._from_portfolio(found)
            if self._first and self._context.clock.is_over(SHARE_OF_PORTFOLIO):
                break
        kept = min(MOST_KEPT, max(1, TASKS_KEPT // len(problem.tasks)))
        for candidate in self.candidates[:kept]:
            yield self._evaluator.evaluate(candidate, "search start")
            for share in SHARES:
                leads = leads_by_share(self._index, candidate.order, candidate.cores, abs(share))
                if leads.any():
                    prefetching = replace(candidate, leads=leads if share > 0 else -leads)
                    yield self._evaluator.evaluate(prefetching, f"search prefetch {share}")

    def _from_hint(self, candidate: Candidate) -> Evaluated | None:
        source = "search hint"
        evaluated = self._evaluator.evaluate(candidate, source)
        if evaluated is not None:
            self._first.append((evaluated.score, source, candidate))
        return evaluated

    def _from_portfolio(self, found: Found) -> Evaluated:
        candidate = self._evaluator.fixed(found.order, found.state)
        name = f"list {found.trial}"
        if all(other != name for _, other, _ in self._first):
            self._first.append((found.score, name, candidate))
        return Evaluated(
            candidate=candidate, score=found.score, state=found.state, source=name, exact=False
        )


def candidate_of(index: ProblemIndex, plan: Plan, weights: Weights) -> Candidate:
    """Return the candidate that comes closest to a plan.

    Its placements give cores and order, its residencies how early loads are prefetched.
    """
    starts = np.empty(len(plan.placements), np.int64)
    cores = np.empty(len(plan.placements), np.int64)
    for placement in plan.placements:
        starts[placement.task] = placement.start
        cores[placement.task] = placement.core
    order = in_order_of(index, starts)
    leads = _leads(index, plan, order, index.memory_of_core[cores], starts)
    return Candidate(order=order, cores=cores, leads=leads, weights=weights)


def _leads(index: ProblemIndex, plan: Plan, order: Ints, memory: Ints, starts: Ints) -> Ints:
    """For each read of what is there at cycle 0, count the tasks of the same memory that start
    between the begin of the residency that serves it and its reader.

    Only the first reader of a residency has its load prefetched.
    """
    leads = np.zeros(index.reads.items.size, np.int64)
    starts_in = {
        int(place): starts[order[memory[order] == place]] for place in np.unique(memory).tolist()
    }
    serves: set[int] = set()
    placements = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    for placement in placements:
        begin = int(index.reads.begin[placement.task])
        for position, served in enumerate(placement.reads):
            residency = plan.residencies[served]
            if served in serves or residency.filled_by_transfer is None:
                continue
            serves.add(served)
            if index.from_outside[begin + position] > 0 and residency.memory in starts_in:
                between = starts_in[residency.memory]
                span = numbers((residency.start, placement.start))
                since, until = np.searchsorted(between, span)
                leads[begin + position] = max(0, int(until) - int(since))
    return leads
