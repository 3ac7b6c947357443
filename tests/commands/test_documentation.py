"""The documentation of command lists names every rule."""

import re
from pathlib import Path

import spmilp.checker.races as races

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


def test_every_rule_is_documented_and_no_other() -> None:
    asked = set(re.findall(r'Violation\("(\w+)"', Path(races.__file__).read_text()))
    documented = set(re.findall(r"^- `(\w+)`:", DOCS.read_text(), flags=re.MULTILINE))

    assert asked == documented
