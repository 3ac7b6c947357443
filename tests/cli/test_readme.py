"""What the README promises on its first screen is what is run."""

import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.doors import Run

ROOT = Path(__file__).parents[2]


def commands() -> list[str]:
    """Return the shell commands of the README, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_first_screen_has_one_command_to_use_and_one_to_test() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:24])
    for command in commands()[:2]:
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
        assert command in first_screen


def test_ci_runs_the_command_that_tests() -> None:
    assert commands()[1] in (ROOT / ".ci" / "run").read_text()


@pytest.mark.full
def test_the_first_command_solves_and_checks(run: Run, tmp_path: Path) -> None:
    words = shlex.split(commands()[0].partition(".venv/bin/spmilp ")[2])
    assert words[1] == "models/resnet8_int8.onnx"
    # A minute of search would find a better plan, and say nothing more of the command.
    ended = run(words[0], ROOT / words[1], *words[2:], "--time-limit", "10s")

    assert (ended.code, "error" in ended.err) == (0, False)
    assert "checked" in ended.out
    assert (tmp_path / "out" / "resnet8" / "plan.json").exists()


def test_the_files_that_the_readme_links_to_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
