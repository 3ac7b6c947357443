"""Nothing has become worse: bounds and lengths against those that a revision before had found."""

import csv
from statistics import fmean

import pytest

import spmilp
from tests.acceptance.doors import PROBLEMS, ROOT, YARDSTICKS

BOUNDS: dict[str, int] = YARDSTICKS["bounds"]
LISTED: dict[str, int] = YARDSTICKS["list"]


def best_known() -> dict[str, tuple[str, int]]:
    """Return the quantity and its best known value of each instance."""
    rows = csv.DictReader((ROOT / "instances" / "best_known.csv").open())
    return {row["instance"]: (row["quantity"], int(row["objective"])) for row in rows}


@pytest.mark.full
def test_bounds_of_all_instances_are_as_good_as_before_and_below_every_plan() -> None:
    known, ratios = best_known(), []
    assert {path.stem for path in PROBLEMS.glob("*.json")} == BOUNDS.keys()
    for name, before in BOUNDS.items():
        bound = spmilp.bound(spmilp.load_problem(PROBLEMS / f"{name}.json"))
        if name in known:
            assert bound.value <= known[name][1], name
        ratios.append(bound.value / before)
    assert fmean(ratios) >= 0.993


def test_bounds_of_small_instances_are_as_good_as_before() -> None:
    small = [name for name in BOUNDS if "-6t-" in name or "-8t-" in name]
    ratios = []
    for name in small:
        bound = spmilp.bound(spmilp.load_problem(PROBLEMS / f"{name}.json"))
        ratios.append(bound.value / BOUNDS[name])
        if name in best_known():
            assert bound.value <= best_known()[name][1], name
    assert fmean(ratios) >= 0.993


@pytest.mark.full
def test_plans_of_the_list_scheduler_are_no_longer_than_before() -> None:
    ratios = []
    for name, before in LISTED.items():
        found = spmilp.solve(PROBLEMS / f"{name}.json", solver="list", time_limit=None)
        assert found.violations == ()
        ratios.append(found.makespan / before)
    assert len(ratios) >= 20
    assert fmean(ratios) <= 1.02
