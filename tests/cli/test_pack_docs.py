"""What the page on packing shows is what happens."""

import re
from pathlib import Path

import pytest

from spmilp.packing.rules import NAMES
from tests.acceptance.doors import Run

PAGE = (Path(__file__).parents[2] / "docs" / "packing.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def words(text: str) -> list[str]:
    """Return the words of an output without the times, on which the columns depend too."""
    return re.sub(r"[\d.]+ (s|ms|µs),", "", text).split()


def test_the_example_gives_the_output_that_is_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text(blocks("csv")[0])
    command = blocks("sh")[0].split()[1:]
    shown, refused, with_pairs, _ = blocks("text")

    assert words(run(*command).out) == words(shown)
    less = run("pack", "buffers.csv", "--capacity", "11")
    assert less.code == 4
    assert words(less.err) == words(refused)

    (tmp_path / "in-place.csv").write_text(blocks("csv")[1])
    command = next(block for block in blocks("sh") if "in-place" in block).split()[1:]
    assert words(run(*command).out) == words(with_pairs)


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks("python")[0], {})
    status, violations = capsys.readouterr().out.splitlines()
    assert status.startswith(("optimal ", "feasible "))
    assert violations == "[]"


def test_every_field_of_the_json_and_every_switch_is_on_the_page(run: Run, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text(blocks("csv")[0])
    fields = run("pack", "buffers.csv", "--minimise", "--json").json
    assert [name for name in (*fields, *NAMES) if f"`{name}`" not in PAGE] == []


def test_every_option_on_the_page_exists(run: Run) -> None:
    named = set(re.findall(r"(--[a-z-]+[a-z])", PAGE))
    known = run("pack", "--help").out
    assert [option for option in sorted(named) if option not in known] == []
