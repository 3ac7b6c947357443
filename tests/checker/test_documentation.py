"""The rules that the checker knows are the rules that the documentation describes."""

import re
from pathlib import Path

import spmilp.checker.rules as rules

DOCS = Path(__file__).parents[2] / "docs" / "format.md"
SOURCES = sorted(Path(rules.__file__).parent.glob("*.py"))


def documented_rules() -> set[str]:
    """Return the names of the rules on the page of formats."""
    chapter = DOCS.read_text().split("## 6. When a plan is valid")[1]
    documented = set(re.findall(r"(?:^- |\*\* )`(\w+)`: ", chapter, flags=re.MULTILINE))
    return documented - {"makespan", "dram_traffic", "energy", "peak_spm"}


def test_every_rule_is_documented_and_every_documented_rule_exists() -> None:
    code = "".join(source.read_text() for source in SOURCES)
    assert documented_rules() == set(re.findall(r'[vV]iolation\(\s*"(\w+)"', code))
