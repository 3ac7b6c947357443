"""``spmilp report`` as a user runs it: the page, and figures."""

import json
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM
from spmilp.plan.file import write_pair
from tests.acceptance.doors import Run

LOG = (
    {"event": "progress", "seconds": 0.1, "source": "list", "incumbent": 50, "bound": None},
    {"event": "progress", "seconds": 0.5, "source": "lns", "incumbent": 40, "bound": 30},
    {"event": "end"},
)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    write_pair(PROBLEM, PLAN, tmp_path / "plan")
    return tmp_path / "plan"


def test_a_figure_shows_what_its_kind_says_and_a_page_has_no_kind(run: Run, plan: Path) -> None:
    ended = run("report", plan, "-o", "f.pdf", "--json")
    assert ended.code == 0, ended.err
    assert ended.json == {"file": "f.pdf", "bytes": Path("f.pdf").stat().st_size}
    assert Path("f.pdf").read_bytes().startswith(b"%PDF")
    assert run("report", plan, "--kind", "memory", "-o", "f.svg").code == 0
    assert run("report", plan, "--kind", "memory").code == 2
    assert run("report", plan, "-o", "f.jpg").code == 2
    assert not Path("f.jpg").exists()


def test_the_gap_needs_a_log_and_finds_the_one_beside_the_plan(run: Run, plan: Path) -> None:
    ended = run("report", plan, "--kind", "gap", "-o", "f.png")
    assert ended.code == 2
    assert "spmilp solve keeps log.jsonl beside the plan" in ended.err
    (plan / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LOG))
    ended = run("report", plan, "--kind", "gap", "-o", "f.png")
    assert ended.code == 0, ended.err
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("line", ["{", '{"event": "progress", "seconds": "x"}'])
def test_a_broken_log_is_named_with_its_line(run: Run, plan: Path, line: str) -> None:
    (plan / "log.jsonl").write_text(f"{json.dumps(LOG[0])}\n{line}\n")
    ended = run("report", plan, "--kind", "gap", "-o", "f.png")
    assert ended.code == 3
    assert "log.jsonl: line 2 is no entry of a search log" in ended.err


def test_the_command_writes_the_page_beside_the_plan(run: Run, tmp_path: Path) -> None:
    write_pair(PROBLEM, PLAN, tmp_path / "duo")
    ended = run("report", "duo", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["file"] == "duo/report.html"
    assert (tmp_path / "duo" / "report.html").stat().st_size == ended.json["bytes"]
    assert run("report", "duo/plan.json", "-o", "here.html").out.startswith("written: here.html (")
    assert (tmp_path / "here.html").exists()
