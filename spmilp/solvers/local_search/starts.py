"""Where the search begins: the list scheduler's portfolio, and its best with loads set ahead."""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.portfolio import FIRST_WEIGHTS, Found, Portfolio
from spmilp.solvers.local_search.candidate import Candidate, Judged
from spmilp.solvers.local_search.evaluate import Evaluator
from spmilp.solvers.local_search.hint import candidate_of
from spmilp.solvers.local_search.problem_index import ProblemIndex
from spmilp.solvers.local_search.sequence import leads_by_share

MOST_KEPT = 4
TASKS_KEPT = 8_000
"""Of all candidates that are tried with loads ahead."""
SHARES = (0.15, 0.3, 0.5, 0.7, -0.15, -0.3, -0.5)


class Starts:
    """The candidates that the search begins with.

    Parameters
    ----------
    hint
        A plan to begin with, besides.
    until
        Of ``time.monotonic``: when to leave what is left of the portfolio; ``None`` for never.
    """

    def __init__(
        self,
        problem: Problem,
        index: ProblemIndex,
        evaluator: Evaluator,
        hint: Plan | None,
        until: float | None,
    ) -> None:
        self._problem = problem
        self._index = index
        self._evaluator = evaluator
        self._hint = hint
        self._until = until
        self._portfolio = Portfolio(problem, evaluator.runner)
        self._first: list[tuple[tuple[int, ...], str, Candidate]] = []

    @property
    def reason(self) -> str:
        """Why there is no schedule, where there is none."""
        return self._portfolio.reason

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Candidates of the portfolio, the best first; weights apart no two are equal."""
        ranked = sorted(self._first, key=lambda start: start[:2])
        return tuple(candidate for _, _, candidate in ranked)

    def __iter__(self) -> Iterator[Judged | None]:
        """TilingEvaluator them one by one."""
        usual = FIRST_WEIGHTS[self._problem.objective.first]
        if self._hint is not None:
            yield self._judge(candidate_of(self._index, self._hint, usual), "search hint")
        for found in self._portfolio:
            yield None if found is None else self._remembered(found)
            if self._first and self._until is not None and monotonic() > self._until:
                break
        kept = min(MOST_KEPT, max(1, TASKS_KEPT // len(self._problem.tasks)))
        for candidate in self.candidates[:kept]:
            yield self._evaluator.judge(candidate, "search start")
            for share in SHARES:
                leads = leads_by_share(self._index, candidate.order, candidate.cores, abs(share))
                if leads.any():
                    yield self._evaluator.judge(
                        replace(candidate, leads=leads if share > 0 else -leads),
                        f"search ahead {share}",
                    )

    def _judge(self, candidate: Candidate, source: str) -> Judged | None:
        judged = self._evaluator.judge(candidate, source)
        if judged is not None:
            self._first.append((judged.score, source, candidate))
        return judged

    def _remembered(self, found: Found) -> Judged:
        candidate = self._evaluator.fixed(found.order, found.state)
        name = f"list {found.trial}"
        if all(other != name for _, other, _ in self._first):
            self._first.append((found.score, name, candidate))
        return Judged(
            candidate=candidate, score=found.score, state=found.state, source=name, exact=False
        )
