"""Problems made infeasible in known ways: the true cause is named, and what helps does help."""

import re
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
    a_network_whose_tiles_do_not_go_between_reserved_ranges,
    changed,
    memories_with,
    operands_too_large,
    results_that_stay_leave_no_room,
    tasks,
    too_much_is_reserved,
)
from explaining.slowed import Made
from spmilp.explaining.infeasible import infeasibility_of
from spmilp.explaining.text import Explanation
from tests.runs.small import write_files


def names(case: tuple[Any, ...]) -> str:
    return case[0].__name__


@pytest.mark.parametrize("case", CASES, ids=names)
def test_the_true_cause_is_named_with_both_numbers_and_something_helps(case: Any) -> None:
    make, cause, memory, needed, usable = case
    said = spmilp.explain(make())
    assert said.data["status"] == "infeasible"
    assert said.data["cause"] == cause
    if memory:
        assert numbers(said) == (memory, needed, usable)
        assert f"{needed:,} B required at one time, at least" in said.text
        assert f"{usable:,} B usable in {memory}" in said.text
        assert remedies(said), said.text
    assert max(map(len, said.text.splitlines())) <= 80


@pytest.mark.parametrize("case", UNPROVEN, ids=names)
def test_what_the_scheduler_has_no_room_for_is_named_with_both_numbers_and_something_helps(
    case: Any,
) -> None:
    make, cause, what, memory, needed, usable = case
    said = spmilp.explain(make())
    assert said.data["status"] == "unknown"
    assert said.data["cause"] == cause
    assert str(said.data["what"]).startswith(what)
    assert numbers(said) == (memory, needed, usable)
    assert remedies(said), said.text
    assert max(map(len, said.text.splitlines())) <= 80


@pytest.mark.parametrize("case", PINNED, ids=names)
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
@pytest.mark.parametrize("case", MODELS, ids=names)
def test_the_true_cause_of_a_network_is_named_and_something_helps(
    case: Any, given: tuple[Path, Any]
) -> None:
    make, cause, *expected, helps = case
    said = spmilp.explain(*make(*given))
    status = "unknown" if cause == "room" else "infeasible"
    assert (said.data["status"], said.data["cause"]) == (status, cause)
    assert numbers(said) == tuple(expected)
    assert remedies(said)[0]["change"].startswith(helps)
    assert remedies(said)[0]["makespan"] > 0


@pytest.mark.full
def test_pins_with_the_smaller_tiles_make_solve_find_the_plan(given: tuple[Path, Any]) -> None:
    made = a_network_whose_tiles_do_not_go_between_reserved_ranges(*given)
    assert spmilp.solve(*made, solver="list").plan is None
    helps = remedies(spmilp.explain(*made))[0]
    tiles = [
        {"group": group, "tiles": tiling}
        for group, tiling in re.findall(r"group (\S+) in (\S+) tiles", helps["change"])
    ]
    assert len(tiles) == 2
    assert spmilp.solve(*made, solver="list", pins={"tiles": tiles}).makespan == helps["makespan"]


def numbers(said: Explanation) -> tuple[object, ...]:
    return said.data["memory"], said.data["required"], said.data["usable"]


def remedies(said: Explanation) -> list[Any]:
    found = said.data["remedies"]
    assert isinstance(found, list)
    return found


def test_so_many_bytes_more_are_the_fewest() -> None:
    problem = operands_too_large()
    every, one = remedies(spmilp.explain(problem))
    assert (every["bytes"], every["least"]) == (1492, True)
    assert one["bytes"] == 1492
    for less, fits in ((0, True), (1, False)):
        size = 1024 + every["bytes"] - less
        grown = changed(problem, memories_with("spm", size=size))
        result = spmilp.solve(grown, solver="list", time_limit=None)
        assert (result.makespan == every["makespan"]) is fits


def test_fewer_reserved_bytes_help_as_well() -> None:
    said = spmilp.explain(too_much_is_reserved())
    assert (
        "516 B fewer reserved in each of 2 memories like spm0 (of 14,384 B)"
        in said.text.replace("\n    ", " ")
    )


def test_the_largest_buffers_that_must_stay_are_named_by_solve_as_well() -> None:
    said = spmilp.explain(results_that_stay_leave_no_room())
    largest = said.data["largest"]
    assert isinstance(largest, list)
    assert largest[0] == {"name": "y0, which must stay", "bytes": 1200}
    result = spmilp.solve(results_that_stay_leave_no_room(), solver="list")
    assert "4600 B must be in spm0 at one time > 4096 B usable, 504 B over" in result.reason
    assert "which must stay 1200 B" in result.reason


def test_the_task_with_the_most_bytes_too_many_is_named_by_solve_as_well() -> None:
    builder = spmilp.ProblemBuilder(Made(spm=1024, reserved=(24, 24)).machine())
    for number, size in enumerate((2000, 5000, 3000)):
        x = builder.input(f"x{number}", (size,))
        y = builder.task(f"t{number}", reads=x, writes=(f"y{number}", 16, "int8"), cycles=5)
        builder.output(y)
    result = spmilp.solve(builder.build(), solver="list")
    assert result.status == "infeasible"
    assert result.reason.startswith(
        "task t1 needs 5016 B > 1000 B usable in spm0 (24 B of it are reserved), 4016 B over"
    )


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
