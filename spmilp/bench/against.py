"""Comparison of two folders of one suite: better, equal and worse runs."""

from collections.abc import Iterator

import pandas as pd

from spmilp.bench.sections import COUNT, RATIO, SECONDS, TEXT, Columns, Section, section
from spmilp.bench.summary import times_less, with_best_greedy
from spmilp.comparison.table import geometric_mean
from spmilp.errors import SpmilpError

KEY = ["instance", "solver", "seed"]
MEASURED = ["objective", "seconds_to_first", "quantity", "row_sha256"]

SOLVERS: Columns = {
    "solver": ("solver", TEXT),
    "runs": ("runs", COUNT),
    "better": ("better", COUNT),
    "equal": ("equal", COUNT),
    "worse": ("worse", COUNT),
    "times_less": ("before ÷ now", RATIO),
    "seconds_before": ("first plan before, s", SECONDS),
    "seconds_now": ("now, s", SECONDS),
}
RUNS: Columns = {
    "instance": ("instance", TEXT),
    "solver": ("solver", TEXT),
    "seed": ("seed", COUNT),
    "objective_before": ("before", COUNT),
    "objective": ("now", COUNT),
    "times_less": ("before ÷ now", RATIO),
    "problem": ("problem", TEXT),
}


def against(now: pd.DataFrame, before: pd.DataFrame) -> Iterator[Section]:
    """Yield a table with one row for each solver, and one with a row for each run, worst first.

    Only runs that both folders have, of the same quantity, are compared. Where other tiles have
    been chosen the problem differs, but the makespans are still of the same network.

    Raises
    ------
    SpmilpError
        If the folders have no run in common.
    """
    both = _joined(now, before)
    if both.empty:
        raise SpmilpError("the two folders have no instance, solver and seed in common")
    note = "Geometric means of the objective before over the objective now: above 1 is better."
    yield section("By solver", note, _by_solver(both), SOLVERS)
    ordered = both.sort_values("times_less", kind="stable", na_position="first")
    yield section("By run", "The worst first.", ordered, RUNS)


def _joined(now: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    kept = [with_best_greedy(each)[[*KEY, *MEASURED]] for each in (now, before)]
    both = kept[0].merge(kept[1], on=KEY, suffixes=("", "_before"))
    both = both[both["quantity"] == both["quantity_before"]].reset_index(drop=True)
    same = both["row_sha256"].eq(both["row_sha256_before"]).fillna(value=True)
    both["problem"] = ["same" if each else "other tiles" for each in same]
    values = (both[name].astype("Float64") for name in ("objective_before", "objective"))
    both["times_less"] = times_less(*values)
    return both


def _by_solver(both: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for solver, runs in both.groupby("solver", sort=False):
        ratio = runs["times_less"]
        rows.append(
            {
                "solver": solver,
                "runs": len(runs),
                "better": int((ratio > 1).sum()),
                "equal": int((ratio == 1).sum()),
                "worse": int((ratio < 1).sum()),
                "times_less": geometric_mean(ratio.dropna()),
                "seconds_before": runs["seconds_to_first_before"].median(),
                "seconds_now": runs["seconds_to_first"].median(),
            }
        )
    return pd.DataFrame(rows)
