"""What README and pages say is there is there, and the other way round."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.results.__main__ import PAGE, page_of
from checker.worked_example import PROBLEM
from cli.fakes import answer
from spmilp.cli.main import EXIT_CODES, VERBS
from spmilp.errors import ExitCode
from spmilp.export.formats import FORMATS
from spmilp.frontend.operators.registry import known_kinds
from spmilp.result import checked
from tests.acceptance.doors import ROOT, Run


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


REFERENCE, PACKING, README = page("docs/cli.md"), page("docs/packing.md"), page("README.md")


def first_cells(text: str) -> set[str]:
    """Return the words in code of the first column of all tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}


def test_every_exit_code_is_documented_in_the_help_and_in_the_reference() -> None:
    table = "\n".join(line for line in REFERENCE.splitlines() if re.match(r"\| \d", line))
    for code in ExitCode:
        assert re.search(rf"\b{int(code)}\b", EXIT_CODES), code
        assert re.search(rf"\b{int(code)}\b", table), code


@pytest.mark.parametrize(
    ("text", "verbs"),
    [(REFERENCE, [each.__name__ for each in VERBS]), (PACKING, ["pack"])],
    ids=["reference", "packing"],
)
def test_every_option_on_a_page_exists(run: Run, text: str, verbs: list[str]) -> None:
    known = "".join(run(*verb, "--help").out for verb in ([], *([each] for each in verbs)))
    named = sorted({*re.findall(r"--[a-z-]*[a-z]", text)})
    assert [option for option in named if option not in known] == []


def test_the_json_fields_of_answers_are_documented(run: Run, tmp_path: Path) -> None:
    assert {*checked(PROBLEM, answer()).data()} - {"lock"} <= first_cells(REFERENCE)
    buffers = re.findall(r"```csv\n(.*?)```", PACKING, flags=re.DOTALL)
    (tmp_path / "buffers.csv").write_text(buffers[0])
    for given in ("--minimise", "--pool=ram=1K"):
        assert {*run("pack", "buffers.csv", given, "--json").json} <= first_cells(PACKING)


def test_every_format_is_documented() -> None:
    assert {*FORMATS} <= first_cells(page("docs/exports.md"))


def test_the_table_names_every_operator_that_is_computed_as_it_is() -> None:
    text = page("docs/operators.md")
    (section,) = re.findall(r"## Computed as they are\n(.*?)\n## ", text, flags=re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")][2:]
    named = Counter(name for row in rows for name in re.findall(r"\w+", row))
    assert set(named) == known_kinds()
    assert max(named.values()) == 1


def test_the_page_of_results_shows_the_kept_figures() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of()


def test_the_first_screen_has_one_command_to_use_and_one_to_test_which_ci_runs() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()][:2]
    for command in commands:
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
        assert command in "\n".join(README.splitlines()[:24])
    assert commands[1] in page(".ci/run")


def test_the_tests_that_ci_names_exist() -> None:
    named = re.findall(r"\btests/([\w./]*)(?:\{([\w./,]+)\})?", page(".ci/run"))
    paths = [ROOT / "tests" / f"{head}{tail}" for head, tails in named for tail in tails.split(",")]
    assert len(paths) > 10
    assert [path for path in paths if not path.exists()] == []


def test_the_files_that_the_readme_links_to_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
