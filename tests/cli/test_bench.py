"""``spmilp bench`` from the command line."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made import SETTING, record
from cli.running import Run
from spmilp.bench.folder import write_tables
from spmilp.bench.read import list_suites
from spmilp.bench.records import Record, Records, appending
from spmilp.errors import ExitCode

SUITE = """
description: One instance.
solvers: [list]
rows:
  - generated: {tasks: 12, cores: 2}
  - builder: not-there
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(SUITE)
    return file


def folder_with(folder: Path, *records: Record) -> Path:
    with appending(folder) as file:
        kept = Records(folder)
        for each in records:
            kept.add(each, file)
    write_tables(kept)
    return folder


def test_the_suites_and_their_rows_are_listed(run: Run, suite: Path) -> None:
    listed = run("bench", "--list", "--json").json["suites"]
    assert [each["name"] for each in listed] == list(list_suites())
    assert "tiny" in run("bench", "--list").out

    rows = run("bench", suite, "--list", "--only", "generated-*", "--solvers", "greedy:*").out
    assert "generated-12t-2c" in rows
    assert "of greedy:*" in rows
    assert "not-there" not in rows
    few = run("bench", suite, "--list", "--solvers", "list,greedy:*/layer_by_layer", "--json").json
    assert few["rows"][0]["solvers"][:2] == ["list", "greedy:contiguous/layer_by_layer"]


def test_a_suite_is_run_and_summed_up(run: Run, suite: Path) -> None:
    arguments = ("--only", "12t", "--solvers", "greedy:contiguous/layer_by_layer", "--seeds", "3")
    ended = run("bench", suite, *arguments, "--time-limit", "5s", "--keep-problems")

    assert (ended.code, ended.err) == (0, "")
    assert "greedy:contiguous/layer_by_layer" in ended.out
    folder = Path("out/bench-mine")
    (row,) = csv.DictReader(io.StringIO((folder / "runs.csv").read_text()))
    assert (row["instance"], row["seed"], row["time_limit"]) == ("generated-12t-2c", "3", "5.0")
    kept = json.loads((folder / "problems" / "generated-12t-2c.json").read_text())
    assert len(kept["tasks"]) == int(row["tasks"]) == 12


def test_no_row_that_can_be_run_is_an_error(run: Run, suite: Path) -> None:
    ended = run("bench", suite, "--only", "not-there")
    assert ended.code == ExitCode.INVALID_INPUT
    assert "no builder is called 'not-there'" in ended.err


def test_a_folder_is_summed_up_without_running_anything(run: Run, tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path / "a", record("x", "list"), record("x", "greedy:locality/critical_path", 150)
    )
    ended = run("bench", "--report", folder)
    assert ended.code == 0
    assert "best greedy" in ended.out

    found = run("bench", "--report", folder, "--json").json
    assert [each["objective"] for each in found["runs"]] == [120, 150]
    assert {each["solver"] for each in found["summary"]} == {
        *("list", "greedy:locality/critical_path", "best greedy")
    }


def test_two_folders_are_compared(run: Run, tmp_path: Path) -> None:
    now = folder_with(tmp_path / "now", record("x", objective=100))
    before = folder_with(tmp_path / "before", record("x", objective=150))
    ended = run("bench", "--report", now, "--against", before)

    assert ended.code == 0
    assert "1.500" in ended.out
    found = run("bench", "--report", now, "--against", before, "--json").json
    assert found["By solver"][0]["before ÷ now"] == "1.500"


def test_a_defect_ends_with_the_code_of_one(run: Run, tmp_path: Path) -> None:
    wrong = record("x", objective=90, bound=95, setting=replace(SETTING, version="2"))
    ended = run("bench", "--report", folder_with(tmp_path / "a", wrong))
    assert ended.code == ExitCode.INTERNAL
    assert "below the bound 95" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), ExitCode.USAGE, "name a suite"),
        (("--against", "here"), ExitCode.USAGE, "--against goes with --report"),
        (("tiny", "--report", "here"), ExitCode.USAGE, "leave the suite tiny out"),
        (("--report", "here"), ExitCode.INVALID_INPUT, "no benchmark has been run there"),
        (("tiny", "--only", "nothing-like-it"), ExitCode.USAGE, "no row of tiny"),
        (("tiny", "--solvers", "nobody"), ExitCode.INVALID_INPUT, "no solver is named 'nobody'"),
        (("tiny", "--seeds", "0,x"), ExitCode.USAGE, "whole numbers"),
        (("tiny", "--seeds", "1,1"), ExitCode.USAGE, "different"),
        (("tiny", "--time-limit", "soon"), ExitCode.USAGE, "no duration"),
        (("nothing",), ExitCode.INVALID_INPUT, "none of this name"),
        (("nothing.yaml",), ExitCode.INVALID_INPUT, "nothing.yaml"),
    ],
)
def test_wrong_usage_is_explained_and_nothing_is_run(
    run: Run, arguments: tuple[str, ...], code: ExitCode, said: str
) -> None:
    ended = run("bench", *arguments)
    assert ended.code == code
    assert said in ended.err.replace("\n", " ")
    assert not Path("out").exists()


def test_a_folder_is_compared_with_the_best_that_is_known(run: Run, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "out", record("x", "list", 120), record("x", "auto", 100))
    best = tmp_path / "best.csv"
    missing = run("bench", "--report", folder, "--best-known", best)
    assert (missing.code, "best.csv: cannot be read" in missing.err) == (3, True)

    both = ("bench", "--report", folder, "--keep-best", best, "--best-known", best)
    gaps = {row["solver"]: row for row in run(*both, "--json").json["gaps"]}
    assert (gaps["list"]["best_known"], gaps["list"]["still_open"]) == (100, 0.416667)
    assert gaps["auto"]["found_with_more_time"] == 0
    assert "Found with more time" in run(*both).out

    best.write_text(best.read_text().replace("x,100,50", "x,40,30"))
    assert "row x: makespan 40 is below the bound 50" in run(*both).err
    assert run("bench", "--report", folder, "--attribute").code == 2
