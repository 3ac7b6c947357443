"""The rules that the checker knows are the rules that the documentation describes."""

import re
from pathlib import Path

from spmilp.checker.rules import RULES

DOCS = Path(__file__).parents[2] / "docs" / "format.md"


def documented_rules() -> set[str]:
    """Return the names of the rules on the page of formats."""
    chapter = DOCS.read_text().split("## 6. When a plan is valid")[1]
    documented = set(re.findall(r"(?:^- |\*\* )`(\w+)`: ", chapter, flags=re.MULTILINE))
    return documented - {"makespan", "dram_traffic", "energy", "peak_spm"}


def test_every_rule_is_documented_and_every_documented_rule_exists() -> None:
    assert documented_rules() == {"structure", *(rule.__name__ for rule in RULES)}
