"""What the documents show works."""

import re
from pathlib import Path

from spmilp.cli.main import EXIT_CODES, VERBS
from spmilp.errors import ExitCode
from tests.acceptance.doors import Run

DOCS = Path(__file__).parents[2] / "docs"


def test_every_exit_code_is_documented_in_the_help_and_in_the_reference() -> None:
    reference = (DOCS / "cli.md").read_text()
    table = "\n".join(line for line in reference.splitlines() if re.match(r"\| \d", line))
    for code in ExitCode:
        assert re.search(rf"\b{int(code)}\b", EXIT_CODES), code
        assert re.search(rf"\b{int(code)}\b", table), code


def test_every_option_of_the_reference_exists(run: Run) -> None:
    text = (DOCS / "cli.md").read_text()
    named = set(re.findall(r"`(--[a-z-]+)", text))
    helps = "".join(run(verb, "--help").out for verb in (each.__name__ for each in VERBS))
    known = helps + run("--help").out
    assert [option for option in sorted(named) if option not in known] == []


def test_the_json_fields_of_the_reference_are_those_of_the_answer() -> None:
    from checker.worked_example import PROBLEM
    from cli.fakes import answer
    from spmilp.result import checked

    rows = re.findall(r"^\| (`.*?`) \|", (DOCS / "cli.md").read_text(), flags=re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    assert set(checked(PROBLEM, answer()).data()) - {"lock"} <= documented
