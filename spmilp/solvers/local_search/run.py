"""One local-search run, from schedule to schedule, each no worse; and what several runs share."""

from dataclasses import dataclass
from threading import Event, Lock

import numpy as np

from spmilp.bounds.best import Bound
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.operator_selection import ByProbability
from spmilp.solvers.local_search.candidate import Candidate, Evaluated, Evaluator
from spmilp.solvers.local_search.moves import MOVES
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.problem_index import ProblemIndex


class SharedIncumbent:
    """The best schedule of several threads."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._lock = Lock()
        self._stop = Event()
        self.bound = Bound("zero", context.problem.objective.first, 0)
        self.best: Evaluated | None = None
        self.best_exact: Evaluated | None = None

    def offer(self, evaluated: Evaluated) -> None:
        """Make a schedule the best one if it is."""
        with self._lock:
            base = self.best_exact
            if evaluated.exact and (base is None or evaluated.score < base.score):
                self.best_exact = evaluated
            if self.best is not None and evaluated.score >= self.best.score:
                return
            self.best = evaluated
        self._report(evaluated)

    def prove(self, bound: Bound) -> None:
        """Make a bound known."""
        self.bound = bound
        if self.best is not None:
            self._report(self.best)

    def _report(self, evaluated: Evaluated) -> None:
        value, bound = evaluated.score[0], self.bound.value
        self._context.report(value, bound, evaluated.source)
        if self._context.is_enough(value, bound):
            self.stop()

    def is_over(self) -> bool:
        """Say whether to stop searching."""
        return self._context.clock.is_over() or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether everybody was told to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let everybody stop after the schedule at hand."""
        self._stop.set()


NEW_BEST, BETTER, ACCEPTED = 1.0, 0.3, 0.01
"""What moves gain."""
TRIES_FOR_A_MOVE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a run leaves a local optimum.

    Parameters
    ----------
    patience
        Steps without a better schedule after which the run goes back to the best one and leaves it
        by a perturbation: a few moves that may make it worse.
    perturbation
        How many such moves.
    slack
        The part of the first quantity by which they may make it worse.
    exchange
        Steps after which a run goes on from the best schedule of all when that is another's.
    moves
        The moves in use, by name.
    steps
        Of each run without a time limit; ``None`` for as many as the number of tasks allows.
    """

    patience: int = 50
    perturbation: int = 3
    slack: float = 0.01
    exchange: int = 60
    moves: tuple[str, ...] = tuple(MOVES)
    steps: int | None = None


class SearchRun:
    """A search over the schedules of one problem that accepts what is no worse.

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
        start: Evaluated,
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
        self._since_best = 0
        self._perturbing = 0
        self._go_to(start)
        self._best = start.score

    def step(self, number: int) -> None:
        """Try one move."""
        name, candidate = self._draw()
        current = self._state.evaluated.score
        limit = current
        if self._perturbing > 0:
            limit = (current[0] + int(current[0] * self._options.slack), *current[1:])
        found = self._evaluator.evaluate(candidate, f"search {name}", limit)
        gain = 0.0
        if found is not None:
            gain = BETTER if found.score < current else ACCEPTED
            if found.score < self._best:
                gain = NEW_BEST
                self._best = found.score
                self._since_best = -1
                self._incumbent.offer(found)
            self._go_to(found)
            self._perturbing = max(0, self._perturbing - 1)
        self._selection.learn(name, gain)
        self._since_best += 1
        if self._since_best >= self._options.patience:
            self._go_back()
            self._perturbing = self._options.perturbation
        elif self._is_left_behind(number):
            self._go_back()

    def _draw(self) -> tuple[str, Candidate]:
        """Return a move that changes something."""
        for _ in range(TRIES_FOR_A_MOVE):
            name = self._selection.next()
            candidate = MOVES[name](self._state)
            if candidate is not None:
                return name, candidate
        # There may be nothing to move (one task on one core).
        return self._options.moves[0], self._state.candidate

    def _is_left_behind(self, number: int) -> bool:
        best = self._incumbent.best_exact
        at_exchange = number % self._options.exchange == self._options.exchange - 1
        return at_exchange and best is not None and best.score < self._best

    def _go_back(self) -> None:
        """Go on from the best schedule of all."""
        self._since_best = 0
        best = self._incumbent.best_exact
        if best is not None:
            self._go_to(best)
            self._best = best.score

    def _go_to(self, evaluated: Evaluated) -> None:
        self._state = NeighbourhoodState(
            index=self._index, evaluated=evaluated, others=self._others, rng=self._rng
        )
