"""The conformance suite: both checkers say of each case what the index does."""

import json
from typing import Any

from tests.acceptance.doors import CONFORMANCE, verdict
from tests.checker.mutations.verdicts import REFUSED, of_second

CASES: list[dict[str, Any]] = json.loads((CONFORMANCE / "index.json").read_text())["cases"]


def test_both_checkers_judge_every_case_as_the_index_says() -> None:
    wrong = []
    for case in CASES:
        problem, plan = CONFORMANCE / case["problem"], CONFORMANCE / case["plan"]
        expected = REFUSED if case["verdict"] == "refused" else frozenset(case["rules"])
        ours = verdict(problem, plan)
        theirs = of_second(problem.read_bytes(), plan.read_bytes())
        if not ours == theirs == expected:
            wrong.append((case["name"], sorted(expected), sorted(ours), sorted(theirs)))
    assert wrong == []
    assert len(CASES) > 200
