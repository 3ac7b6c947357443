"""Problems made infeasible in known ways: the true cause is named, and what helps does help."""

from pathlib import Path
from typing import Any

import pytest

import spmilp
from checker.worked_example import PROBLEM
from explaining.infeasible import (
    CASES,
    MODELS,
    PINNED,
    UNPROVEN,
    changed,
    memories_with,
    results_that_stay_leave_no_room,
    tasks,
)
from explaining.slowed import Made
from spmilp import pipeline
from spmilp.explaining.infeasible import infeasibility_of
from spmilp.explaining.text import Explanation
from spmilp.watch import Observer
from tests.runs.small import write_files


@pytest.mark.parametrize("name", [*CASES, *UNPROVEN])
def test_the_true_cause_is_named_with_both_numbers_and_something_helps(name: str) -> None:
    make, cause, *what, memory, needed, usable = (CASES | UNPROVEN)[name]
    said = spmilp.explain(make())
    assert said.data["status"] == ("unknown" if name in UNPROVEN else "infeasible")
    assert said.data["cause"] == cause
    assert str(said.data["what"]).startswith("".join(what))
    if memory:
        assert numbers(said) == (memory, needed, usable)
        assert f"{needed:,} B required at one time{', at least' * (not what)}" in said.text
        assert f"{usable:,} B usable in {memory}" in said.text
        assert remedies(said), said.text
    assert max(map(len, said.text.splitlines())) <= 80


@pytest.mark.parametrize("case", PINNED.values(), ids=PINNED)
def test_the_pin_that_is_in_the_way_is_named_and_leaving_it_out_helps(case: Any) -> None:
    make, says, pin = case
    said = spmilp.explain(make())
    assert (said.data["status"], said.data["cause"]) == ("infeasible", "pins")
    assert says in f"{said.data['what']}: {said.data['reason']}"
    changes = [each["change"] for each in remedies(said)]
    assert f"without the pin of {pin}" in changes


@pytest.fixture
def given(tmp_path: Path) -> tuple[Path, Any]:
    model, machine = write_files(tmp_path)
    return model, spmilp.load_machine(machine).machine


@pytest.mark.full
@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_the_true_cause_of_a_network_is_named_and_something_helps(
    case: Any, given: tuple[Path, Any]
) -> None:
    change, cause, *expected, helps = case
    model, machine = given
    said = spmilp.explain(model, change(machine))
    assert (said.data["status"], said.data["cause"]) == ("infeasible", cause)
    assert numbers(said) == tuple(expected)
    assert remedies(said)[0]["change"].startswith(helps)
    assert remedies(said)[0]["makespan"] > 0


def numbers(said: Explanation) -> tuple[object, ...]:
    return said.data["memory"], said.data["required"], said.data["usable"]


def remedies(said: Explanation) -> list[Any]:
    found = said.data["remedies"]
    assert isinstance(found, list)
    return found


def test_so_many_bytes_more_are_the_fewest() -> None:
    problem = tasks(spm=1024)
    every, one = remedies(spmilp.explain(problem))
    assert (every["bytes"], every["least"]) == (1492, True)
    assert one["bytes"] == 1492
    for less, fits in ((0, True), (1, False)):
        size = 1024 + every["bytes"] - less
        grown = changed(problem, memories_with("spm", size=size))
        result = spmilp.solve(grown, solver="list", time_limit=None)
        assert (result.makespan == every["makespan"]) is fits


def test_the_largest_buffers_that_must_stay_are_named_by_solve_as_well() -> None:
    said = spmilp.explain(results_that_stay_leave_no_room())
    largest = said.data["largest"]
    assert isinstance(largest, list)
    assert largest[0] == {"name": "y0, which must stay", "bytes": 1200}
    result = spmilp.solve(results_that_stay_leave_no_room(), solver="list")
    assert "4600 B must be in spm0 at one time > 4096 B usable, 504 B over" in result.reason
    assert "which must stay 1200 B" in result.reason


def test_two_results_in_place_of_two_operands_need_no_more_than_the_operands() -> None:
    builder = spmilp.ProblemBuilder(
        memories_with("spm", alignment=16, size=32)(Made().machine()), name="twice"
    )
    x, y = builder.input("x", (1,)), builder.input("y", (1,))
    written = (("a", 1, "int8"), ("b", 1, "int8"))
    made = builder.task("t", reads=(x, y), writes=written, cycles=5, in_place=((x, "a"), (y, "b")))
    for each in made:
        builder.output(each)
    problem = builder.build()
    assert infeasibility_of(problem) is None
    assert spmilp.solve(problem, solver="cpsat", time_limit="10s").plan is not None


def test_what_fits_is_explained_as_a_plan() -> None:
    assert infeasibility_of(PROBLEM) is None
    said = spmilp.explain(tasks())
    assert said.data["status"] == "slow"


def test_an_interrupt_ends_the_trials_and_what_is_known_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original, calls = pipeline.solved, list[None]()

    def solved(*given: Any) -> Any:
        calls.append(None)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(pipeline, "solved", solved)
    heard = list[str]()
    observer = Observer(on_stage=heard.append, on_log=lambda entry: heard.append(entry.source))
    said = spmilp.explain(tasks(spm=1024), observer=observer)
    assert numbers(said) == ("spm0", 2516, 1024)
    (every,) = remedies(said)
    assert (every["bytes"], len(calls)) == (1492, 2)
    assert heard == ["reading", "trying what helps", "1,492 B more", "the same in spm0"]


def test_pinned_tiles_that_do_not_fit_are_explained(given: tuple[Path, Any]) -> None:
    model, machine = given
    small = memories_with("spm", size=4096)(machine)
    pins = {"tiles": [{"group": "*", "tiles": "1x1"}]}
    said = spmilp.explain(model, small, pins=pins)
    assert said.data["status"] != "slow"
    assert "pins: tiles 1x1 of group" in said.text
    assert remedies(said)[0]["bytes"] >= 2048
    assert spmilp.explain(model, small).data["status"] == "slow"
