"""The conformance suite: both checkers judge each case as it says; it is made again alike."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from instances.conformance.make import files
from spmilp.errors import FileError
from spmilp.problem.read import read_problem
from tests.checker.mutations.verdicts import REFUSED, Verdict, of_checker, of_second
from tests.checker.test_documentation import documented_rules

FOLDER = Path(__file__).parents[2] / "instances" / "conformance"
CASES = json.loads((FOLDER / "index.json").read_text())["cases"]
TWIN = Path(__file__).parents[2] / "docs" / "checker.py"


def expected(case: dict[str, Any]) -> Verdict:
    return REFUSED if case["verdict"] == "refused" else frozenset(case["rules"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_both_checkers_judge_a_case_as_the_index_says(case: dict[str, Any]) -> None:
    problem, plan = FOLDER / case["problem"], FOLDER / case["plan"]
    try:
        read = read_problem(problem)
        ours = of_checker(read, plan, read)
    except FileError:
        ours = REFUSED
    assert ours == expected(case)
    assert of_second(problem.read_bytes(), plan.read_bytes()) == expected(case)


def test_every_rule_is_broken_by_some_plan_and_by_some_plan_alone() -> None:
    rules = Counter(rule for case in CASES for rule in case["rules"])
    alone = {case["rules"][0] for case in CASES if len(case["rules"]) == 1}
    assert min(rules.values()) >= 3
    assert alone == rules.keys() == documented_rules()


def test_the_script_makes_the_same_bytes() -> None:
    kept = {str(p.relative_to(FOLDER)): p.read_bytes() for p in FOLDER.rglob("*.json")}
    assert {name: text.encode() for name, text in files().items()} == kept


def test_files_are_small() -> None:
    assert max(path.stat().st_size for path in FOLDER.rglob("p*/*.json")) < 16 * 1024


@pytest.mark.parametrize(
    ("only", "code", "said"),
    [
        ("link-rates", 0, "3 cases, 0 of them judged otherwise"),
        ("refused-2", 1, "exit code 2, expected 0 (refused)"),
    ],
)
def test_others_run_their_checkers_on_it(only: str, code: int, said: str) -> None:
    options = ["--only", only] if code == 0 else ["--only", only, "--refused", "0"]
    command = [sys.executable, str(FOLDER / "run.py"), *options, "--", sys.executable, str(TWIN)]
    done = subprocess.run(
        [*command, "{problem}", "{plan}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert said in done.stdout
