"""The conformance suite: both checkers judge each case as it says; it is made again alike."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from instances.conformance.make import files
from spmilp.checker.rules import RULES

DOCS = Path(__file__).parents[2] / "docs" / "format.md"


def documented_rules() -> set[str]:
    """Return the names of the rules on the page of formats."""
    chapter = DOCS.read_text().split("## 6. When a plan is valid")[1]
    documented = set(re.findall(r"(?:^- |\*\* )`(\w+)`: ", chapter, flags=re.MULTILINE))
    return documented - {"makespan", "dram_traffic", "energy", "peak_spm"}


def test_every_rule_is_documented_and_every_documented_rule_exists() -> None:
    assert documented_rules() == {"structure", *(rule.__name__ for rule in RULES)}


FOLDER = Path(__file__).parents[2] / "instances" / "conformance"
CASES = json.loads((FOLDER / "index.json").read_text())["cases"]
TWIN = Path(__file__).parents[2] / "docs" / "checker.py"


def test_every_rule_is_broken_by_some_plan_and_by_some_plan_alone() -> None:
    rules = Counter(rule for case in CASES for rule in case["rules"])
    alone = {case["rules"][0] for case in CASES if len(case["rules"]) == 1}
    assert min(rules.values()) >= 3
    assert alone == rules.keys() == documented_rules()


@pytest.mark.full
def test_the_script_makes_the_same_bytes() -> None:
    kept = {str(p.relative_to(FOLDER)): p.read_bytes() for p in FOLDER.rglob("*.json")}
    assert {name: text.encode() for name, text in files().items()} == kept


@pytest.mark.full
@pytest.mark.parametrize(
    ("only", "code", "said"),
    [
        ("2-multicast", 0, "6 cases, 0 of them judged otherwise"),
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
