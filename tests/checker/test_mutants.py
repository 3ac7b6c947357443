"""Two thousand mutants of plans: both checkers must say the same of each."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.checker.mutations import KINDS
from tests.checker.mutations.subjects import SUBJECTS
from tests.checker.mutations.verdicts import REFUSED

MANY = {"wormhole", "set_8x8", "epiphany4", "occamy", "xdna1", "ipu_mk2", "sw26010_cg"}
"""Machines on which a plan takes longer to check, for their many links."""

QUICK = {"worked example", "stream", "state"}
"""Those that are always compared."""


def mutants_compared(name: str) -> int:
    """Return how many mutants of a plan are compared."""
    return 50 if name in MANY else 110


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.full] * (n not in QUICK)) for n in SUBJECTS]
)
def test_both_checkers_say_the_same_of_mutants(name: str, tmp_path: Path) -> None:
    subject = SUBJECTS[name]()
    found = Counter[str]()
    for kind, plan in subject.mutants(Random(name), mutants_compared(name)):
        one, other = subject.verdicts(kind, plan, tmp_path / "mutant.json")
        assert one == other, f"{kind} of {name}"
        found["accepted" if not one else "refused" if one == REFUSED else "rejected"] += 1
    assert found["accepted"] > 0
    assert found["refused"] > 0
    assert found["rejected"] > found["accepted"] + found["refused"]


@pytest.mark.full
def test_every_kind_of_mutation_changes_some_plan() -> None:
    subjects = [SUBJECTS[name]() for name in ("worked example", "coolidge", "stream")]
    made = {kind for s in subjects for kind, _ in s.mutants(Random(0), 12 * len(KINDS))}
    assert made == KINDS.keys()
    assert len(made) > 150
