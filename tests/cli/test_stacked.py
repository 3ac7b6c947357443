"""Tables that are too wide for a terminal are set below each other, and numbers stay whole."""

import re
from pathlib import Path

import pytest

from checker.worked_example import PROBLEM
from cli.running import MODELS, Run
from spmilp.cli import output as out
from spmilp.cli.output import print_stacked
from spmilp.problem.file import write_problem

HEADINGS = ("name", "first", "second", "third")
ROWS = [("conv[red]", "1,234,567", "2", "3,456"), ("x" * 60, "7", "89,012", "3")]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_one_that_does_not_is_cut_and_each_part_begins_with_the_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "PLAIN_WIDTH", 40)
    print_stacked(out.console(), HEADINGS, ROWS, numbers={1, 2, 3})
    printed = lines(capsys)
    assert max(map(len, printed)) <= 40
    assert [line.split()[1:] for line in printed if line.startswith("name")] == [
        ["first"],
        ["second"],
        ["third"],
    ]
    assert [line.split()[1:] for line in printed if line.startswith("conv[red]")] == [
        ["1,234,567"],
        ["2"],
        ["3,456"],
    ]


@pytest.mark.full
def test_groups_and_compare_can_be_read_at_80_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_problem(PROBLEM, tmp_path / "a-problem-with-a-rather-long-name.json")
    monkeypatch.setattr(out, "PLAIN_WIDTH", 80)
    model = MODELS / "resnet8_int8.onnx"
    found = run("explain", model, "--groups", "--json").json["groups"]
    printed = run("explain", model, "--groups").out
    assert max(map(len, printed.splitlines())) <= 80
    for group in found:
        assert re.search(rf"(?<![\d,]){group['macs']:,}(?![\d,])", printed)
    compare = ("compare", *tmp_path.glob("*.json"), "--solvers", "list")
    (row,) = run(*compare, "--json").json["runs"]
    compared = run(*compare).out
    assert max(map(len, compared.splitlines())) <= 80
    assert re.search(rf"(?<![\d,]){row['objective']:,}(?![\d,])", compared)
