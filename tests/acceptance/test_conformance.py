"""The conformance suite and changed plans: both checkers say the same, as the index does."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.acceptance.doors import (
    CONFORMANCE,
    REFUSED,
    mutant,
    second_verdict,
    verdict,
)

CASES: list[dict[str, Any]] = json.loads((CONFORMANCE / "index.json").read_text())["cases"]


def test_both_checkers_judge_every_case_as_the_index_says() -> None:
    wrong = []
    for case in CASES:
        problem, plan = CONFORMANCE / case["problem"], CONFORMANCE / case["plan"]
        expected = REFUSED if case["verdict"] == "refused" else frozenset(case["rules"])
        ours = verdict(problem, plan)
        theirs = second_verdict(problem.read_bytes(), plan.read_bytes())
        if not ours == theirs == expected:
            wrong.append((case["name"], sorted(expected), sorted(ours), sorted(theirs)))
    assert wrong == []
    assert len(CASES) > 200


def assert_same_verdicts(count: int, seed: int, folder: Path) -> Counter[str]:
    """Change numbers of valid plans, and ask both checkers about each."""
    random = Random(seed)
    valid = [case for case in CASES if case["verdict"] == "valid"][:12]
    found = Counter[str]()
    file = folder / "plan.json"
    for turn in range(count):
        case = valid[turn % len(valid)]
        problem = CONFORMANCE / case["problem"]
        changed, content = mutant(json.loads((CONFORMANCE / case["plan"]).read_bytes()), random)
        file.write_bytes(content)
        ours, theirs = verdict(problem, file), second_verdict(problem.read_bytes(), content)
        assert ours == theirs, f"{case['name']}: {changed}"
        found["valid" if not ours else "refused" if ours == REFUSED else "invalid"] += 1
    return found


def test_both_checkers_say_the_same_of_changed_plans(tmp_path: Path) -> None:
    found = assert_same_verdicts(100, 1, tmp_path)
    assert found["invalid"] > 50
    assert found["valid"] + found["refused"] > 0


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 7))
def test_both_checkers_say_the_same_of_two_thousand_changed_plans(
    seed: int, tmp_path: Path
) -> None:
    found = assert_same_verdicts(400, seed, tmp_path)
    assert min(found["invalid"], found["valid"], found["refused"]) > 0
