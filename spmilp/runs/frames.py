"""Rows as tidy tables: what is compared with what, what is not dominated, CSV."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pandas as pd

from spmilp.errors import ArgumentError
from spmilp.export.names import no_formula
from spmilp.runs.jobs import Run
from spmilp.runs.points import Point

WHOLE = (
    *("seed", "objective", "bound", "roofline", "makespan", "period", "dram_traffic", "energy"),
    *("peak_spm", "tasks", "cores", "transfers"),
)
"""Columns of whole numbers, some of them missing."""

REAL = ("dram_ratio", "seconds")
COMPARED = [
    *("instance", "tasks", "cores", "solver", "seed", "status", "quantity", "objective"),
    *("bound", "bound_source", "gap", "ratio_to_bound", "ratio_to_best"),
    *("own_bound", "seconds", "transfers", "dram_ratio", "reason"),
]
SWEPT = [
    *("status", "quantity", "objective", "bound", "bound_source", "gap", "roofline", "makespan"),
    *("period", "dram_traffic", "energy", "peak_spm", "tasks", "cores", "seconds", "warm_start"),
    *("reason", "row"),
]
SHORT = {"traffic": "dram_traffic", "peak": "peak_spm"}
"""Names of columns that people may write shorter."""


def frame_of(runs: Iterable[Run]) -> pd.DataFrame:
    """Return one row for each run, with its fields but for the log as columns."""
    names = [each.name for each in fields(Run) if each.name != "log"]
    frame = pd.DataFrame([[getattr(run, name) for name in names] for run in runs], columns=names)
    return frame.astype(dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(REAL, "Float64"))


def compared_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return one row for each run, compared with all runs of its instance.

    The bound of an instance is the best that any solver proved: all are proven, so each holds for
    every plan. ``docs/cli.md`` explains the columns.
    """
    frame = frame_of(runs).rename(columns={"bound": "own_bound"})
    # The first solver that proved the strongest bound keeps the credit.
    strongest = frame.sort_values("own_bound", ascending=False, kind="stable")
    proven = strongest.drop_duplicates("instance").set_index("instance")
    frame["bound"] = frame["instance"].map(proven["own_bound"]).astype("Int64")
    frame["bound_source"] = frame["instance"].map(proven["bound_source"])
    objective = frame["objective"].astype("Float64")
    best = objective.groupby(frame["instance"], sort=False).transform("min")
    frame["gap"] = ((objective - frame["bound"]) / objective.replace(0, 1)).astype("Float64")
    frame["ratio_to_bound"] = ratio(objective, frame["bound"])
    frame["ratio_to_best"] = ratio(objective, best)
    return frame[COMPARED]


def ratio(one: pd.Series, to: pd.Series) -> pd.Series:
    """Return ``one / to``; where that is 0, both are counted one higher."""
    shift = (to == 0).astype("Int64")
    return (one + shift) / (to + shift)


def summary_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each solver of a :func:`compared_frame`.

    ``proven`` counts objectives that equal the instance's bound, from any solver. Ratios are
    geometric means over the runs with a plan; ``seconds`` is the shifted geometric mean of the wall
    seconds (shift 1 s) over all runs.
    """
    rows = []
    for solver, runs in frame.groupby("solver", sort=False):
        solved = runs[runs["objective"].notna()]
        rows.append(
            {
                "solver": solver,
                "runs": len(runs),
                "plans": len(solved),
                "proven": int((solved["objective"] == solved["bound"]).sum()),
                "ratio_to_bound": geometric_mean(solved["ratio_to_bound"]),
                "ratio_to_best": geometric_mean(solved["ratio_to_best"]),
                "worst_ratio_to_best": solved["ratio_to_best"].max(),
                "median_gap": solved["gap"].median(),
                "seconds": geometric_mean(runs["seconds"].dropna() + 1) - 1,
            }
        )
    return pd.DataFrame(rows)


def geometric_mean(values: pd.Series) -> float:
    """Return the geometric mean of positive numbers; NaN of none."""
    return float(np.exp(np.log(values.astype(float)).mean()))


def contradictions(frame: pd.DataFrame) -> tuple[str, ...]:
    """Say which plans are better than what some solver claims to have proven.

    Each is a defect: the checker accepted the plan, so the bound is wrong.
    """
    wrong = frame[(frame["objective"] < frame["bound"]).fillna(value=False)]
    return tuple(
        f"{row.instance}: {row.solver} has a valid plan of {row.objective:,} below the bound "
        f"{row.bound:,} ({row.bound_source})"
        for row in wrong.itertuples()
    )


def swept_frame(points: Iterable[Point], runs: Mapping[str, Run]) -> pd.DataFrame:
    """Return a row for each point whose key has a run; ``docs/sweep.md`` explains the columns."""
    there = [point for point in points if point.key in runs]
    about = pd.DataFrame([_columns(point) for point in there])
    if about.empty:
        return about
    found = frame_of(runs[point.key] for point in there).rename(columns={"key": "row"})
    found["seconds"] = found["seconds"].round(3)
    objective = found["objective"].astype("Float64")
    found["gap"] = ((objective - found["bound"]) / objective.replace(0, 1)).round(6)
    types = {"spm": "Int64", "time_limit": "Float64"}
    return pd.concat([about, found[SWEPT]], axis=1).astype(types)


def _columns(point: Point) -> dict[str, object]:
    """Return what a point is: the columns before those of its run."""
    sizes = [spm.size for spm in point.machine.machine.spms if spm.size is not None]
    return {
        "model": point.model,
        "dim": ",".join(f"{name}={size}" for name, size in point.dim),
        "machine": point.base,
        "solver": point.options["solver"],
        "tiles": point.options["tiles"] or "",
        "seed": point.options["seed"],
        **({"asked_period": asked} if (asked := point.options["period"]) else {}),
        "time_limit": point.time_limit,
        "spm": max(sizes, default=None),
        **{
            name: float(value) if isinstance(value, Fraction) else value
            for name, value in point.values
            if name != "spm"
        },
    }


def mark_undominated(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the table with a column ``pareto``: no other row of the model is as good and better.

    All columns are to be small. Rows without a plan are not marked; of equal rows all are. An
    ``ArgumentError`` names a column that is not there, or is no number of any plan.
    """
    figures = frame[[column_named(frame, name) for name in columns]].astype("Float64")
    there = frame["makespan"].notna() & figures.notna().all(axis=1)
    marked = pd.Series(False, index=frame.index)
    for _, group in figures[there].groupby([frame["model"], frame["dim"]], sort=False):
        values = group.to_numpy(dtype=float)
        for index, own in zip(group.index, values, strict=True):
            marked[index] = not ((values <= own).all(axis=1) & (values < own).any(axis=1)).any()
    return frame.assign(pareto=marked)


def column_named(frame: pd.DataFrame, name: str) -> str:
    """Return the column of numbers that a name stands for."""
    wanted = SHORT.get(name, name)
    numbers = list(map(str, frame.select_dtypes("number").columns))
    if wanted not in numbers:
        raise ArgumentError(f"pareto {name}: there are {', '.join(numbers)}")
    if wanted == "energy" and not frame["energy"].fillna(0).any():
        raise ArgumentError("pareto energy: the machine states no energies, so it is 0 everywhere")
    return wanted


def csv_of(frame: pd.DataFrame) -> str:
    """Return a table as CSV; texts in it, which may come from files, are no formulas."""

    def plain_cell(cell: object) -> object:
        # The writer quotes line feeds, but not all readers take a carriage return for a letter.
        return no_formula(cell.replace("\r", "\\r")) if isinstance(cell, str) else cell

    return frame.map(plain_cell).to_csv(index=False, lineterminator="\n")
