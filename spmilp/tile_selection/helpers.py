"""Processes that evaluate tilings beside the search, one at a time each.

A helper reads the pickled network on its machine, then pickled questions from its standard input,
and answers on its standard output. It ends when its input does, so that it never outlives the
search.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO

from spmilp.interruptible import Background
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.problem.documents import collector_paused
from spmilp.problem.objective import Quantity
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import Shares
from spmilp.solvers.list_scheduler.schedules import Rule, promising_schedules
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.initial import Tilings
from spmilp.tile_selection.tiled_problem import TiledProblem, Worth
from spmilp.units import Cycles

# Not as a module that is run: its classes would be others than those here.
COMMAND = (sys.executable, "-c", "from spmilp.tile_selection.helpers import main; main()")

LEAST_SECONDS, MOST_HELPERS = 8.0, 7
"""A search of less time has no helpers, for they take seconds to begin; and so many at most."""


def helpers_for(workers: int, seconds: float | None) -> int:
    """Return how many helpers a search of so many seconds has, ``None`` for no limit."""
    if seconds is not None and seconds < LEAST_SECONDS:
        return 0
    return min(workers - 1, MOST_HELPERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What tilings are worth.

    Parameters
    ----------
    rules
        Of the list scheduler, the best one first.
    latest
        Schedules that are sure to take more cycles are given up.
    justifies
        Whether the best schedule is justified unless it takes more cycles than that.
    shares
        Schedules leave addresses open: the part of each memory that may be filled.
    seconds
        Schedules that take longer to make are given up, too; ``None`` for no limit.
    """

    tilings: Tilings
    rules: tuple[Rule, ...]
    latest: Cycles
    justifies: bool
    seconds: float | None = None
    shares: Shares | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The answer.

    Parameters
    ----------
    tasks
        Of the problem; 0 where its tiles do not fit.
    schedules
        What the schedule by each rule that has made one is worth.
    justified
        What the best one is worth, once it is justified with open addresses.
    """

    tasks: int
    schedules: tuple[tuple[Rule, Worth], ...] = ()
    justified: Worth | None = None

    @property
    def least(self) -> Worth | None:
        """What the tilings are worth; ``None`` without a schedule."""
        return self.justified or min((worth for _, worth in self.schedules), default=None)


class Answer:
    """What a helper will say."""

    def __init__(self, ask: Callable[[], Values | None]) -> None:
        self._asked = Background(ask)

    @property
    def is_there(self) -> bool:
        """Whether the helper has answered, or ended."""
        return self._asked.ended.is_set()

    def wait(self, seconds: float | None) -> None:
        """Wait until it is there."""
        self._asked.ended.wait(seconds)

    @property
    def values(self) -> Values | None:
        """The answer; ``None`` where the helper has ended instead."""
        return self._asked.answer()


class Helpers:
    """So many processes beside this one, or as many as can be made; they end with the block.

    Parameters
    ----------
    subject
        What the tilings are for.
    question
        Makes the question about some tilings; ``None`` where none may be asked now.
    learn
        Called with what helpers have found.
    """

    def __init__(
        self,
        subject: NetworkOnMachine,
        count: int,
        question: Callable[[Tilings], Question | None],
        learn: Callable[[Values], None],
    ) -> None:
        self._question = question
        self.learn = learn
        self._free = list[_Helper]()
        pickled = pickle.dumps(_without_search(subject)) if count else b""
        with suppress(OSError):
            for _ in range(count):
                self._free.append(_Helper(pickled))
        self._all = tuple(self._free)

    def __enter__(self) -> "Helpers":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End all processes."""
        for one in self._all:
            one.end()

    def ask(self, tilings: Tilings) -> Answer | None:
        """Let a helper evaluate tilings; ``None`` where all are at work."""
        question = self._question(tilings) if self._free else None
        if question is None:
            return None
        helper = self._free.pop()

        def ask() -> Values | None:
            answer = helper.ask(question)
            if answer is not None:
                self._free.append(helper)
            return answer

        return Answer(ask)


class _Helper:
    """One process.

    Parameters
    ----------
    subject
        Pickled. It is written before the first question: the process reads once it has begun.
    """

    def __init__(self, subject: bytes) -> None:
        self._to_say = subject
        # In a session of its own an interrupt at the terminal does not reach it.
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ask(self, question: Question) -> Values | None:
        """Return the answer; ``None`` where the process has ended."""
        given, said = self._process.stdin, self._process.stdout
        with suppress(OSError, EOFError, ValueError, pickle.UnpicklingError):
            if given is not None and said is not None:
                given.write(self._to_say)
                self._to_say = b""
                pickle.dump(question, given)
                given.flush()
                values: Values = pickle.load(said)
                return values
        return None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


@collector_paused()
def values_of(subject: NetworkOnMachine, question: Question) -> Values:
    """Evaluate tilings."""
    problem = subject.lower(question.tilings)
    if groups_that_do_not_fit(problem):
        return Values(tasks=0)
    limits = question.latest, question.seconds, question.shares
    found = list(promising_schedules(problem, question.rules, *limits))
    values = Values(
        tasks=len(problem.tasks),
        schedules=tuple((one.trial.rule, one.score) for one in found),
    )
    best = min(found, key=lambda one: one.score, default=None)
    is_makespan = problem.objective.first is Quantity.MAKESPAN
    if best is None or not question.justifies or not is_makespan or best.score[0] > question.latest:
        return values
    tiled = TiledProblem(problem=problem, schedule=best)
    return replace(values, justified=tiled.once_opened(Clock(None)).worth)


def _without_search(subject: NetworkOnMachine) -> NetworkOnMachine:
    """Return it without what belongs to the process of the search."""
    return replace(subject, go_on=_do_nothing, tiled=None)


def _do_nothing() -> None:
    pass


def serve(given: IO[bytes], answers: IO[bytes]) -> None:
    """Answer questions about the subject that comes first, until there are no more."""
    with suppress(EOFError):
        subject: NetworkOnMachine = pickle.load(given)
        while True:
            pickle.dump(values_of(subject, pickle.load(given)), answers)
            answers.flush()


def main() -> None:
    """Answer on the standard output; what libraries print goes elsewhere."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        serve(sys.stdin.buffer, answers)
