"""``spmilp explain`` as a user runs it."""

from dataclasses import replace
from pathlib import Path

from checker.worked_example import PLAN, PROBLEM
from cli.running import Run
from spmilp.plan.write import write_pair

EXAMPLE = Path(__file__).parents[2] / "docs" / "example" / "resnet8"


def test_a_plan_is_explained_in_lines_of_80_columns(run: Run) -> None:
    ended = run("explain", EXAMPLE)
    assert ended.code == 0, ended.err
    assert max(map(len, ended.out.splitlines())) <= 80
    for heading in ("The critical chain", "What binds it", "Phases", "Idle cores"):
        assert f"\n{heading}\n" in ended.out


def test_json_has_cycles_that_add_up(run: Run) -> None:
    found = run("explain", EXAMPLE / "plan.json", "--json").json
    makespan = found["makespan"]
    assert sum(found["chain"]["cycles"].values()) == makespan
    assert sum(row["cycles"] for row in found["bindings"]) == makespan
    assert [row["start"] for row in found["phases"][1:]] == [
        row["end"] for row in found["phases"][:-1]
    ]
    for phase in found["phases"]:
        assert sum(row["cycles"] for row in phase["bindings"]) == phase["end"] - phase["start"]
    for core in found["cores"]:
        assert core["busy"] + sum(core["idle"].values()) == makespan


def test_an_invalid_plan_is_not_explained(run: Run, tmp_path: Path) -> None:
    wrong = replace(PLAN, claim=replace(PLAN.claim, makespan=1))
    write_pair(PROBLEM, wrong, tmp_path / "duo")
    ended = run("explain", "duo")
    assert (ended.code, ended.out) == (7, "")
