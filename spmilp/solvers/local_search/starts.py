"""Where the search begins: the list scheduler's portfolio, and its best with loads set ahead."""

from collections.abc import Iterator
from dataclasses import replace

from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.list_scheduler.portfolio import FIRST_WEIGHTS, Found
from spmilp.solvers.list_scheduler.schedules import Schedules
from spmilp.solvers.local_search.candidate import Candidate, Judged
from spmilp.solvers.local_search.evaluate import Evaluator
from spmilp.solvers.local_search.hint import candidate_of
from spmilp.solvers.local_search.problem_index import ProblemIndex
from spmilp.solvers.local_search.sequence import leads_by_share

SHARE_OF_PORTFOLIO = 0.3
"""Of a time limit: the first rules of the portfolio are almost as good as all of them."""
MOST_KEPT = 4
TASKS_KEPT = 8_000
"""Of all candidates that are tried with loads ahead."""
SHARES = (0.15, 0.3, 0.5, 0.7, -0.15, -0.3, -0.5)


class Starts:
    """The candidates that the search begins with: the hint, the portfolio, and its best anew."""

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

    def __iter__(self) -> Iterator[Judged | None]:
        """Judge them one by one."""
        problem, hint = self._context.problem, self._context.hint
        usual = FIRST_WEIGHTS[problem.objective.first]
        if hint is not None:
            yield self._judge(candidate_of(self._index, hint, usual), "search hint")
        for found in self._schedules:
            yield None if found is None else self._remembered(found)
            if self._first and self._context.clock.is_over(SHARE_OF_PORTFOLIO):
                break
        kept = min(MOST_KEPT, max(1, TASKS_KEPT // len(problem.tasks)))
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
