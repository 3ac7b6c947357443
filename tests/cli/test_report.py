"""``spmilp report`` as a user runs it."""

from dataclasses import replace
from pathlib import Path

from checker.worked_example import PLAN, PROBLEM
from cli.running import Run
from spmilp.plan.write import write_pair


def test_the_command_writes_the_page_beside_the_plan(run: Run, tmp_path: Path) -> None:
    write_pair(PROBLEM, PLAN, tmp_path / "duo")
    ended = run("report", "duo", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["file"] == "duo/report.html"
    assert (tmp_path / "duo" / "report.html").stat().st_size == ended.json["bytes"]
    assert run("report", "duo/plan.json", "-o", "here.html").out.startswith("written: here.html (")
    assert (tmp_path / "here.html").exists()


def test_an_invalid_plan_is_not_shown(run: Run, tmp_path: Path) -> None:
    wrong = replace(PLAN, claim=replace(PLAN.claim, makespan=1))
    write_pair(PROBLEM, wrong, tmp_path / "duo")
    ended = run("report", "duo")
    assert (ended.code, ended.out) == (7, "")
    assert "the plan is invalid and is not shown: claims: " in ended.err
    assert not (tmp_path / "duo" / "report.html").exists()
