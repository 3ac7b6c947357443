"""The page of operators names those that the front end knows, each once."""

import re
from collections import Counter
from pathlib import Path

from spmilp.frontend.operators.registry import known_kinds

PAGE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")


def test_the_table_names_every_operator_that_is_computed_as_it_is() -> None:
    (section,) = re.findall(r"## Computed as they are\n(.*?)\n## ", PAGE, flags=re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")][2:]
    named = Counter(name for row in rows for name in re.findall(r"\w+", row))
    assert set(named) == known_kinds()
    assert max(named.values()) == 1
