"""One walk from schedule to schedule."""

from dataclasses import dataclass

import numpy as np

from spmilp.solvers.common.operator_selection import ByProbability
from spmilp.solvers.local_search.candidate import Candidate, Judged
from spmilp.solvers.local_search.evaluate import Evaluator
from spmilp.solvers.local_search.incumbent import SharedIncumbent
from spmilp.solvers.local_search.moves import MOVES
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.problem_index import ProblemIndex

NEW_BEST, BETTER, ACCEPTED = 1.0, 0.3, 0.01
"""What moves gain."""
TRIES_FOR_A_MOVE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a walk turns where it is stuck.

    Parameters
    ----------
    patience
        Steps without a better schedule after which the walk goes back to the best one and leaves it
        by a few moves that may make it worse.
    kicks
        How many such moves.
    slack
        The part of the first quantity by which they may make it worse.
    exchange
        Steps after which a walk goes on from the best schedule of all when that is another's.
    moves
        The moves in use, by name.
    steps
        Of each walk without a time limit; ``None`` for as many as the number of tasks allows.
    """

    patience: int = 50
    kicks: int = 3
    slack: float = 0.01
    exchange: int = 60
    moves: tuple[str, ...] = tuple(MOVES)
    steps: int | None = None


@dataclass(slots=True)
class Record:
    """What a move has been tried and good for, for reports."""

    tried: int = 0
    accepted: int = 0
    best: int = 0
    gain: int = 0


class SearchRun:
    """A walk over the schedules of one problem that accepts what is no worse.

    Late acceptance, with histories of 10 to 100, came less far in the same time.

    Parameters
    ----------
    start
        The first current schedule.
    others
        Candidates from which moves may take a part.
    """

    def __init__(
        self,
        index: ProblemIndex,
        evaluator: Evaluator,
        incumbent: SharedIncumbent,
        start: Judged,
        others: tuple[Candidate, ...],
        rng: np.random.Generator,
        options: RunOptions,
    ) -> None:
        self._index = index
        self._evaluator = evaluator
        self._incumbent = incumbent
        self._others = others
        self._rng = rng
        self._options = options
        self._selection = ByProbability(options.moves, rng)
        self._now = self._state_of(start)
        self._best = start.score
        self._since_best = 0
        self._kicks = 0
        self.records = {name: Record() for name in options.moves}

    def step(self, number: int) -> None:
        """Try one move."""
        name, candidate = self._draw()
        current = self._now.judged.score
        limit = current if self._kicks == 0 else self._loose(current)
        judged = self._evaluator.judge(candidate, f"search {name}", limit)
        record = self.records[name]
        record.tried += 1
        gain = 0.0
        if judged is not None:
            record.accepted += 1
            gain = BETTER if judged.score < current else ACCEPTED
            if judged.score < self._best:
                gain = NEW_BEST
                record.best += 1
                record.gain += self._best[0] - judged.score[0]
                self._best = judged.score
                self._since_best = -1
                self._incumbent.offer(judged)
            self._now = self._state_of(judged)
            self._kicks = max(0, self._kicks - 1)
        self._selection.learn(name, gain)
        self._since_best += 1
        if self._since_best >= self._options.patience:
            self._go_back()
            self._kicks = self._options.kicks
        elif self._is_left_behind(number):
            self._go_back()

    def _draw(self) -> tuple[str, Candidate]:
        """Return a move that changes something."""
        for _ in range(TRIES_FOR_A_MOVE):
            name = self._selection.next()
            candidate = MOVES[name](self._now)
            if candidate is not None:
                return name, candidate
        # There may be nothing to move (one task on one core).
        return self._options.moves[0], self._now.candidate

    def _is_left_behind(self, number: int) -> bool:
        best = self._incumbent.best_to_go_on_from
        at_exchange = number % self._options.exchange == self._options.exchange - 1
        return at_exchange and best is not None and best.score < self._best

    def _go_back(self) -> None:
        """Go on from the best schedule of all."""
        self._since_best = 0
        best = self._incumbent.best_to_go_on_from
        if best is not None:
            self._now = self._state_of(best)
            self._best = best.score

    def _loose(self, score: tuple[int, ...]) -> tuple[int, ...]:
        return (score[0] + int(score[0] * self._options.slack), *score[1:])

    def _state_of(self, judged: Judged) -> NeighbourhoodState:
        return NeighbourhoodState(
            index=self._index, judged=judged, others=self._others, rng=self._rng
        )
