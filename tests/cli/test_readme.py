"""What the README promises on its first screen is what is run."""

import re
from pathlib import Path

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


def test_the_files_that_the_readme_links_to_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
