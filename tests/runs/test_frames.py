"""Tables of runs: what is compared with what."""

import csv
import io
import math

import pandas as pd
import pytest

from spmilp.problem.objective import Quantity
from spmilp.runs.frames import (
    compared_frame,
    contradictions,
    csv_of,
    mark_undominated,
    summary_frame,
)
from spmilp.runs.jobs import Run


def run(instance: str, solver: str, objective: int | None, bound: int, seconds: float = 1.0) -> Run:
    return Run(
        instance=instance,
        tasks=3,
        cores=2,
        solver=solver,
        seed=0,
        status="unknown" if objective is None else "feasible",
        quantity=str(Quantity.MAKESPAN),
        objective=objective,
        bound=bound,
        bound_source=f"{solver}'s",
        seconds=seconds,
        transfers=None if objective is None else 4,
        dram_ratio=1.0,
        reason="" if objective is not None else "no time",
    )


RUNS = (
    run("x", "quick", 120, 80),
    run("x", "exact", 100, 100, seconds=9.0),
    run("y", "quick", 50, 40),
    run("y", "exact", None, 30, seconds=9.0),
)


def test_the_bound_of_an_instance_is_the_best_that_any_solver_proved() -> None:
    frame = compared_frame(RUNS)

    assert list(frame["bound"]) == [100, 100, 40, 40]
    assert list(frame["bound_source"]) == ["exact's", "exact's", "quick's", "quick's"]
    assert list(frame["own_bound"]) == [80, 100, 40, 30]


def test_the_summary_has_one_row_for_each_solver() -> None:
    quick, exact = summary_frame(compared_frame(RUNS)).to_dict("records")

    assert (quick["solver"], quick["runs"], quick["plans"], quick["proven"]) == ("quick", 2, 2, 0)
    assert (exact["solver"], exact["runs"], exact["plans"], exact["proven"]) == ("exact", 2, 1, 1)
    assert quick["ratio_to_best"] == pytest.approx(math.sqrt(1.2))
    assert quick["ratio_to_bound"] == pytest.approx(math.sqrt(1.2 * 1.25))
    assert quick["worst_ratio_to_best"] == pytest.approx(1.2)
    assert (quick["seconds"], exact["seconds"]) == pytest.approx((1.0, 9.0))


def test_a_plan_below_a_proven_bound_is_a_contradiction() -> None:
    assert contradictions(compared_frame(RUNS)) == ()

    (said,) = contradictions(compared_frame((run("x", "a", 90, 80), run("x", "b", 100, 95))))
    assert "a has a valid plan of 90 below the bound 95 (b's)" in said


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1"])
def test_no_name_is_a_formula_in_a_csv_file(name: str) -> None:
    text = csv_of(compared_frame((run(name, "a", 100, 90),)))
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["instance"] == f"'{name}"
    assert row["objective"] == "100"


FRAME = pd.DataFrame(
    {
        "model": ["a", "a", "a", "a", "a", "b"],
        "dim": "",
        "spm": pd.array([16, 32, 32, 64, 64, 99], dtype="Int64"),
        "makespan": pd.array([100, 80, 90, 80, None, 500], dtype="Int64"),
        "dram_traffic": pd.array([7, 9, 5, 8, None, 9], dtype="Int64"),
        "energy": pd.array([0, 0, 0, 0, None, 0], dtype="Int64"),
        "status": "feasible",
    }
)


def test_a_row_is_marked_where_no_other_of_its_model_is_as_good_and_better() -> None:
    two = mark_undominated(FRAME, ["makespan", "spm"])["pareto"]
    assert list(two) == [True, True, False, False, False, True]
    three = mark_undominated(FRAME, ["makespan", "spm", "traffic"])["pareto"]
    assert list(three) == [True, True, True, True, False, True]


@pytest.mark.parametrize(
    ("column", "said"),
    [("makspan", "there are spm, makespan"), ("status", "there are"), ("energy", "0 everywhere")],
)
def test_a_column_that_cannot_be_compared_is_named(column: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mark_undominated(FRAME, ["makespan", column])
