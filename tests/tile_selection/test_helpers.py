"""Helpers evaluate tilings as the search itself would."""

import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from spmilp.pipeline import load
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES
from spmilp.tile_selection.first_choice import FirstChoice, NetworkOnMachine, first_choice
from spmilp.tile_selection.helpers import Answer, Helpers, Question, Values, helpers_for, values_of
from spmilp.tile_selection.initial import Tilings
from spmilp.tile_selection.trials import Trials

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"

SECONDS = 120.0
"""In which a helper has begun and answered, on the busiest of computers."""

MORE_THAN_A_PIPE_HOLDS = 2**22
"""Bytes."""


@pytest.fixture(scope="module")
def first() -> FirstChoice:
    network, target = load(MODEL, "mesh4x4")
    return first_choice(network, target.machine)


def about(tilings: Tilings) -> Question:
    return Question(tilings=tilings, rules=EVALUATION_RULES[:2], latest=NEVER - 1, justifies=True)


def test_a_helper_says_what_the_search_would_find_and_its_end_is_no_answer(
    first: FirstChoice,
) -> None:
    learnt: list[Values] = []
    with Helpers(first.subject, 1, about, learnt.append) as helpers:
        answer = helpers.ask(first.tilings)
        assert answer is not None
        assert helpers.ask(first.tilings) is None
        answer.wait(SECONDS)
        expected = values_of(first.subject, about(first.tilings))
        assert answer.values == expected
        assert expected.least == expected.justified
        helpers.end()
        last = helpers.ask(first.tilings)
        assert last is not None
        last.wait(SECONDS)
        assert last.values is None
    assert not learnt


def test_a_process_that_does_not_read_yet_does_not_hold_up_the_search(
    first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeping = (sys.executable, "-c", "import time; time.sleep(999)")
    monkeypatch.setattr("spmilp.tile_selection.helpers.COMMAND", sleeping)
    monkeypatch.setattr(pickle, "dumps", lambda _: b" " * MORE_THAN_A_PIPE_HOLDS)
    with Helpers(first.subject, 1, about, lambda _: None) as helpers:
        answer = helpers.ask(first.tilings)
        assert answer is not None
        assert not answer.is_there
    answer.wait(SECONDS)
    assert answer.values is None


def test_without_processes_nobody_is_asked(
    first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BlockingIOError("fork: resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with Helpers(first.subject, 2, about, lambda _: None) as helpers:
        assert helpers.ask(first.tilings) is None


class Scripted(Helpers):
    """Answers at once: values by the first count of the first group, no answer for some."""

    def __init__(self, subject: NetworkOnMachine, values: dict[int, int | None]) -> None:
        self.learnt: list[Values] = []
        super().__init__(subject, 0, about, self.learnt.append)
        self.given = values

    def ask(self, tilings: Tilings) -> Answer | None:
        number = tilings[0].parts
        if number not in self.given:
            return None
        value = self.given[number]
        rule = EVALUATION_RULES[0]
        values = None if value is None else Values(tasks=1, schedules=((rule, (value,)),))
        answer = Answer(lambda: values)
        answer.wait(SECONDS)
        return answer


def test_what_a_helper_finds_better_or_does_not_answer_is_evaluated_here(
    first: FirstChoice,
) -> None:
    problem = first.lower(first.tilings)
    values = {1: 100, 2: 90, 3: 95, 5: 80}
    here: list[int] = []

    def lower(tilings: Tilings) -> Problem:
        here.append(tilings[0].parts)
        return problem

    helpers = Scripted(first.subject, {2: 90, 3: None, 4: 120})
    trials = Trials(lower, lambda _: (values[here[-1]],), helpers=helpers)
    own = first.tilings[0]
    tried = [{**first.tilings, 0: replace(own, parts=number)} for number in range(1, 6)]
    assert trials.is_better(tried[0])
    results: dict[int, bool] = {}
    number_of = {id(one): number for number, one in enumerate(tried, start=1)}
    trials.try_all((one, partial(results.__setitem__, number_of[id(one)])) for one in tried[1:])
    assert results == {2: True, 3: False, 4: False, 5: True}
    assert sorted(here) == [1, 2, 3, 5]
    assert trials.least == (80,)
    assert sorted(one.least or () for one in helpers.learnt) == [(90,), (120,)]


def test_short_searches_have_no_helpers() -> None:
    assert helpers_for(4, 2.0) == 0
    assert helpers_for(1, None) == 0
    assert helpers_for(4, 60.0) == 3
