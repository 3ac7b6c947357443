"""A few figures for each solver, from the table of runs."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from spmilp.bench.kinds import Kind
from spmilp.bench.suite import GREEDY
from spmilp.comparison.table import geometric_mean

BEST_GREEDY = "best greedy"
"""The best one-pass rule of each row: a baseline that is only known afterwards."""

SOON = 5.0
"""Seconds after which there should be a plan."""

KEPT_OF_BEST = [
    *("instance", "seed", "class", "tight", "quantity", "objective", "bound", "gap"),
    *("ratio_to_bound", "roofline", "ratio_to_roofline", "roofline_gap"),
    *("peer_objective", "ratio_to_peer", "status", "violations", "row_sha256"),
]


def with_best_greedy(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs, and the best one-pass rule of each instance and seed as one more solver.

    It has no times: to have its plan one must run all the rules.
    """
    greedy = frame[frame["solver"].str.startswith(GREEDY) & frame["objective"].notna()]
    if greedy.empty:
        return frame
    first = greedy.sort_values("objective", kind="stable").groupby(["instance", "seed"]).head(1)
    best = first.sort_index()[KEPT_OF_BEST].assign(solver=BEST_GREEDY)
    together = pd.concat([frame, best.reindex(columns=frame.columns).astype(frame.dtypes)])
    return together.reset_index(drop=True)


def groups(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield all runs, and those of each class of rows unless it equals a class before it."""
    yield "all rows", frame
    balanced = frame["class"] == Kind.BALANCED
    tight = frame["tight"].fillna(value=False).astype(bool)
    parts = {
        "balanced or tight rows": balanced | tight,
        "balanced rows": balanced,
        "rows with tight memory": tight,
        "traffic-bound rows": frame["class"] == Kind.TRAFFIC,
        "compute-bound rows": frame["class"] == Kind.COMPUTE,
    }
    seen = {(False,) * len(frame), (True,) * len(frame)}
    for name, mask in parts.items():
        if tuple(mask) not in seen:
            seen.add(tuple(mask))
            yield name, frame[mask]


def summary_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each solver.

    Columns
    -------
    runs, plans, proven
        Runs that were asked for; that ended with an accepted plan; whose plan meets the bound.
    ratio_to_bound, ratio_to_roofline, ratio_to_peer
        Geometric means over the runs with a plan (and a roofline, and a peer).
    mean_gap, mean_roofline_gap
        ``1 - 1 / ratio_to_bound``: the gap of the geometric mean ratio; the same for the roofline.
    worst_gap
        The largest ``(objective - bound) / objective``.
    seconds_to_first
        Median over the runs with a plan.
    soon
        Runs with a plan within five seconds.
    primal_integral
        Mean, in seconds, over all runs that took place.
    peak_mib
        The largest.
    """
    rows = []
    for solver, runs in frame.groupby("solver", sort=False):
        solved = runs[runs["objective"].notna()]
        ratio, to_roofline = (
            _mean(solved[name]) for name in ("ratio_to_bound", "ratio_to_roofline")
        )
        rows.append(
            {
                "solver": solver,
                "runs": len(runs),
                "plans": len(solved),
                "proven": int((solved["objective"] == solved["bound"]).sum()),
                "ratio_to_bound": ratio,
                "mean_gap": 1 - 1 / ratio,
                "worst_gap": _or_nan(solved["gap"].max()),
                "ratio_to_roofline": to_roofline,
                "mean_roofline_gap": 1 - 1 / to_roofline,
                "ratio_to_peer": _mean(solved["ratio_to_peer"]),
                "seconds_to_first": _or_nan(solved["seconds_to_first"].median()),
                "soon": int((solved["seconds_to_first"] <= SOON).sum()),
                "primal_integral": _or_nan(runs["primal_integral"].mean()),
                "peak_mib": _or_nan(runs["peak_mib"].max()),
            }
        )
    return pd.DataFrame(rows)


def baseline_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how many times less each solver needs than each baseline.

    A row for each solver, a column for each baseline: the geometric mean of the baseline's
    objective over the solver's, over the instances and seeds on which both have a plan.
    """
    table = frame.pivot_table(
        index=["instance", "seed"], columns="solver", values="objective", sort=False
    ).astype(float)
    solvers = [name for name in dict.fromkeys(frame["solver"]) if name in table]
    ratios = {
        base: [geometric_mean(times_less(table[base], table[solver])) for solver in solvers]
        for base in solvers
    }
    return pd.DataFrame(ratios, index=pd.Index(solvers, name="solver"))


def times_less(baseline: "pd.Series[float]", objective: "pd.Series[float]") -> "pd.Series[float]":
    """Return ``baseline / objective`` where both are known; both one higher where one is 0."""
    both = baseline.notna() & objective.notna()
    before, after = baseline[both], objective[both]
    shift = ((before == 0) | (after == 0)).astype(float)
    return (before + shift) / (after + shift)


def instance_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each instance, with the mean objective of each solver in a column.

    ``gap`` and ``roofline_gap`` are of the best run on the row's own problem, or of the best one of
    all where each has tiles of its own; ``class`` says whether memory is tight.
    """
    is_own = frame["problem_sha256"].isna() | (frame["problem_sha256"] == frame["row_sha256"])
    runs = frame.assign(has_none=frame["gap"].isna(), is_other=~is_own)
    ranked = runs.sort_values(["has_none", "is_other", "gap"], kind="stable")
    best = ranked.groupby("instance").head(1)
    about = best.set_index("instance")[["tasks", "class", "tight", "bound", "gap", "roofline_gap"]]
    tight = about.pop("tight").fillna(value=False).astype(bool)
    about["class"] = [
        f"{kind}, tight" if is_tight else kind
        for kind, is_tight in zip(about["class"], tight, strict=True)
    ]
    objectives = frame.pivot_table(
        index="instance", columns="solver", values="objective", sort=False
    )
    order = list(dict.fromkeys(frame["instance"]))
    solvers = [name for name in dict.fromkeys(frame["solver"]) if name in objectives]
    return about.join(objectives[solvers]).reindex(order).reset_index()


def wide_gaps(frame: pd.DataFrame, above: float) -> pd.DataFrame:
    """Return the best run of each instance whose gap is larger than that, the widest first."""
    solved = frame[frame["gap"].notna() & (frame["solver"] != BEST_GREEDY)]
    best = solved.sort_values("gap", kind="stable").groupby("instance", sort=False).head(1)
    return best[best["gap"] > above].sort_values("gap", ascending=False, kind="stable")


def _mean(values: pd.Series) -> float:
    return geometric_mean(values.dropna())


def _or_nan(value: object) -> float:
    return float("nan") if value is None or value is pd.NA else float(np.float64(str(value)))
