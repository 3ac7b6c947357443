"""Tilings that other processes evaluate before the search asks for them.

The search takes what they find in its own order, and only where nothing better was found since they
began. So it finds what it finds alone, and sooner.
"""

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from functools import cache

from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.problem.problem import Problem
from spmilp.processes import ChildError, Helpers
from spmilp.solvers.common.clock import Clock, OutOfTimeError
from spmilp.tile_selection.evaluation import Evaluation, Findings, Outcome
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.settings import TileOptions
from spmilp.tile_selection.tiled_problem import Worth


def prepare(subject: bytes, justifies: bool) -> None:
    """Know what is tiled, in a child."""
    found: NetworkOnMachine = pickle.loads(subject)
    counts = PieceCounts(found.network, found.machine)
    evaluation = Evaluation(counts, TileOptions(justifies=justifies), None, Clock(None))
    _prepared().append((replace(found, go_on=evaluation.go_on).lower, evaluation))


@cache
def _prepared() -> list[tuple[Callable[[Tilings], Problem], Evaluation]]:
    return []


def evaluate(question: bytes) -> Outcome | None:
    """Evaluate tilings, in a child; ``None`` when the time is over."""
    ((lower, evaluation),) = _prepared()
    evaluation.findings, limit, pace, gone, tilings = pickle.loads(question)
    evaluation.clock = Clock(limit, pace, gone=gone)
    try:
        return outcome(lower, evaluation, tilings)
    except OutOfTimeError:
        return None


def outcome(
    lower: Callable[[Tilings], Problem], evaluation: Evaluation, tilings: Tilings
) -> Outcome:
    """Return what tilings are worth; the evaluation knows nothing of it yet."""
    problem = lower(tilings)
    return Outcome(None) if groups_that_do_not_fit(problem) else evaluation.outcome_of(problem)


class Ahead:
    """Evaluates tilings together with other processes.

    Parameters
    ----------
    lower
        Makes their problems in this process.
    on_warning
        Called when a process has ended; this one then goes on alone.
    """

    def __init__(
        self,
        helpers: Helpers,
        lower: Callable[[Tilings], Problem],
        evaluation: Evaluation,
        on_warning: Callable[[str], None],
    ) -> None:
        self.depth = 2 * helpers.number
        self._helpers, self._lower, self._evaluation = helpers, lower, evaluation
        self._on_warning = on_warning
        self._of: Findings | None = None
        self._asked: dict[tuple[Tiling, ...], Future[Outcome | None]] = {}

    def take(self, tilings: Tilings, after: Sequence[Tilings]) -> Worth | None:
        """Return what tilings are worth, of which the evaluation learns.

        Parameters
        ----------
        after
            What will be asked for next, unless these are better; there is a plan already.
        """
        self._begin(after)
        asked = self._asked.pop(key_of(tilings), None)
        while asked is not None and not (asked.done() or asked.cancel()):
            waiting = (one for one in after if self._asked[key_of(one)].cancel())
            other = next(waiting, None)
            if other is None:
                wait_for([asked])
            else:
                here = self._asked[key_of(other)] = Future()
                here.set_result(outcome(self._lower, self._evaluation, other))
        found = None if asked is None or asked.cancelled() else self._result(asked)
        found = found or outcome(self._lower, self._evaluation, tilings)
        self._evaluation.take(found)
        return found.worth

    def _begin(self, tilings: Sequence[Tilings]) -> None:
        """Let others evaluate tilings, against what is known now; what was asked before is moot."""
        findings, clock = self._evaluation.findings, self._evaluation.clock
        if findings is not self._of:
            for future in self._asked.values():
                future.cancel()
            self._asked.clear()
            self._of = findings
        for one in tilings:
            if key_of(one) not in self._asked:
                # At once, for the pace learns while this waits.
                question = (findings, clock.limit, clock.pace, clock.seconds_gone, one)
                asked = self._helpers.begin(evaluate, pickle.dumps(question))
                self._asked[key_of(one)] = asked

    def _result(self, asked: Future[Outcome | None]) -> Outcome | None:
        try:
            return asked.result()
        except (ChildError, OSError, MemoryError) as error:
            if self.depth > 0:
                self.depth = 0
                self._on_warning(f"a worker ended, and the search for tiles went on alone: {error}")
            return None


def key_of(tilings: Tilings) -> tuple[Tiling, ...]:
    """Return what is equal for equal tilings of all groups."""
    return tuple(tilings[index] for index in sorted(tilings))
