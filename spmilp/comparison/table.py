"""Runs as tidy tables, and performance profiles of solvers."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from spmilp.comparison.run import Run
from spmilp.errors import ArgumentError
from spmilp.export.names import no_formula
from spmilp.report.palette import CONTRASTING
from spmilp.report.plots.figures import grid_of_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIO_FLOOR = 1
"""Added to both sides of a ratio whose bound is 0, as for a quantity that can vanish."""


def run_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return one row for each run, compared with all runs of its instance.

    Columns
    -------
    instance, tasks, cores, solver, seed, status, quantity, objective
        As in :class:`~spmilp.comparison.run.Run`.
    bound, bound_source
        The best bound that any solver proved on the instance: they are all proven, so each holds
        for every plan.
    gap
        ``(objective - bound) / objective``.
    ratio_to_bound
        ``objective / bound``, 1 or more.
    ratio_to_best
        ``objective`` over the least objective of the instance, 1 or more.
    own_bound
        What this solver proved itself.
    seconds, seconds_to_best
        Wall seconds of the run, and until its last improvement.
    transfers, busy, dram_ratio
        Of the plan, as in :class:`~spmilp.comparison.run.Run`.
    reason
        Why there is no plan.
    """
    frame = pd.DataFrame([_row(run) for run in runs], columns=COLUMNS)
    objective = frame["objective"].astype("Float64")
    by_instance = frame.groupby("instance", sort=False)
    strongest = by_instance["own_bound"].transform("max")
    # The source of the strongest bound; the first solver that proved it keeps the credit.
    sources = frame.loc[by_instance["own_bound"].idxmax(), ["instance", "own_source"]]
    frame["bound"] = strongest
    frame["bound_source"] = frame["instance"].map(dict(sources.itertuples(index=False)))
    best = objective.groupby(frame["instance"], sort=False).transform("min")
    frame["gap"] = ((objective - strongest) / objective.replace(0, 1)).astype("Float64")
    frame["ratio_to_bound"] = _ratio(objective, strongest)
    frame["ratio_to_best"] = _ratio(objective, best)
    return frame[ORDER]


def csv_of(frame: pd.DataFrame) -> str:
    """Return a table as CSV; texts in it, which may come from files, are no formulas."""

    def plain(cell: object) -> object:
        # The writer quotes line feeds, but not all readers take a carriage return for a letter.
        return no_formula(cell.replace("\r", "\\r")) if isinstance(cell, str) else cell

    return frame.map(plain).to_csv(index=False, lineterminator="\n")


COLUMNS = [
    *("instance", "tasks", "cores", "solver", "seed", "status", "quantity", "objective"),
    *("own_bound", "own_source", "seconds", "seconds_to_best"),
    *("transfers", "busy", "dram_ratio", "reason"),
]
ORDER = [
    *("instance", "tasks", "cores", "solver", "seed", "status", "quantity", "objective"),
    *("bound", "bound_source", "gap", "ratio_to_bound", "ratio_to_best"),
    *("own_bound", "seconds", "seconds_to_best", "transfers", "busy", "dram_ratio", "reason"),
]


def _row(run: Run) -> tuple[object, ...]:
    return (
        run.instance,
        run.tasks,
        run.cores,
        run.solver,
        run.seed,
        run.status,
        str(run.quantity),
        pd.NA if run.objective is None else run.objective,
        run.bound,
        run.bound_source,
        run.seconds,
        pd.NA if run.seconds_to_best is None else run.seconds_to_best,
        pd.NA if run.transfers is None else run.transfers,
        pd.NA if run.busy is None else run.busy,
        pd.NA if run.dram_ratio is None else run.dram_ratio,
        run.reason,
    )


def _ratio(objective: pd.Series, to: pd.Series) -> pd.Series:
    shift = (to == 0).astype("Int64") * RATIO_FLOOR
    return (objective + shift) / (to + shift)


def summary_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each solver of a :func:`run_frame`.

    Columns
    -------
    runs, plans, proven
        How many runs there were, ended with an accepted plan, and are proven optimal: the
        objective equals the instance's bound, from any solver.
    ratio_to_bound, ratio_to_best
        Geometric means over the runs with a plan.
    worst_ratio_to_best
        The largest.
    median_gap
        Over the runs with a plan.
    seconds
        Shifted geometric mean of the wall seconds (shift 1 s), over all runs.
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
                "seconds": geometric_mean(runs["seconds"] + 1) - 1,
            }
        )
    return pd.DataFrame(rows)


def sign_test_frame(frame: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return how often a solver wins against, ties with and loses to each of the others.

    The sign test asks how likely it is that so many of the runs that are no tie fall to one side
    when either side is as likely as the other (binomial, two-sided). No plan loses to any plan.

    Parameters
    ----------
    frame
        A :func:`run_frame`; runs are paired by instance and seed.
    reference
        The solver whose wins are counted.

    Returns
    -------
    DataFrame
        A row per other solver: ``solver``, ``wins``, ``ties`` and ``losses`` of the reference,
        ``p_value`` (1 where all are ties), and ``ratio``, the geometric mean of the other's
        objective over the reference's where both have a plan.

    Raises
    ------
    ValueError
        If the reference has no run.
    """
    from scipy.stats import binomtest

    by_run = (
        frame.set_index(["instance", "seed", "solver"])["objective"].astype("Float64").unstack()
    )
    if reference not in by_run:
        there = ", ".join(map(str, by_run.columns))
        raise ArgumentError(f"solver {reference}: has no run here; there are {there}")
    none = by_run.isna()
    values = by_run.astype(float).fillna(np.inf)
    rows = []
    for solver in frame["solver"].drop_duplicates():
        if solver == reference:
            continue
        wins = int((values[reference] < values[solver]).sum())
        losses = int((values[reference] > values[solver]).sum())
        both = ~none[reference] & ~none[solver]
        ratios = _ratio(by_run.loc[both, solver], by_run.loc[both, reference])
        rows.append(
            {
                "solver": solver,
                "wins": wins,
                "ties": len(values) - wins - losses,
                "losses": losses,
                "p_value": binomtest(wins, wins + losses).pvalue if wins + losses else 1.0,
                "ratio": geometric_mean(ratios),
            }
        )
    return pd.DataFrame(rows, columns=["solver", "wins", "ties", "losses", "p_value", "ratio"])


def geometric_mean(values: pd.Series) -> float:
    """Return the geometric mean of positive numbers; NaN of none."""
    if values.empty:
        return float("nan")
    return float(np.exp(np.log(values.astype(float)).mean()))


def contradictions(frame: pd.DataFrame) -> tuple[str, ...]:
    """Say which plans are better than what some solver claims to have proven.

    Each is a defect: the checker accepted the plan, so the bound is wrong.
    """
    wrong = frame[frame["objective"].notna() & (frame["objective"] < frame["bound"])]
    return tuple(
        f"{row.instance}: {row.solver} has a valid plan of {row.objective:,} below the bound "
        f"{row.bound:,} ({row.bound_source})"
        for row in wrong.itertuples()
    )


def performance_profile(frame: pd.DataFrame, column: str = "ratio_to_best") -> pd.DataFrame:
    """Return for each solver the share of instances that it solves within each ratio.

    A solver without a plan on an instance is within no ratio of it. Seeds of one instance count
    each. After E. Dolan and J. Moré, *Benchmarking optimization software with performance
    profiles*, Mathematical Programming 91 (2002).

    Parameters
    ----------
    frame
        A :func:`~spmilp.comparison.table.run_frame`.
    column
        ``ratio_to_best``, ``ratio_to_bound``, or another ratio of 1 or more.

    Returns
    -------
    DataFrame
        Indexed by the ratios that occur, ascending; one column of shares, 0 to 1, per solver.
    """
    taus = np.unique(np.append(frame[column].dropna().astype(float), 1.0))
    shares = {
        solver: [float((runs[column].fillna(np.inf) <= tau).sum()) / len(runs) for tau in taus]
        for solver, runs in frame.groupby("solver", sort=False)
    }
    return pd.DataFrame(shares, index=pd.Index(taus, name=column))


RATIO_TICKS = (1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
LINE_STYLES = ("-", "--", ":", "-.")


def profile_figure(profile: pd.DataFrame) -> "Figure":
    """Draw a :func:`performance_profile` as one staircase per solver.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    figure, (axes,) = grid_of_axes(1, 1, (4.0,))
    last = profile.index[-1] * 1.02
    for place, solver in enumerate(profile.columns):
        again, colour = divmod(place, len(CONTRASTING))
        axes.step(
            [*profile.index, last],
            [*profile[solver], profile[solver].iloc[-1]],
            where="post",
            label=str(solver),
            color=CONTRASTING[colour],
            linestyle=LINE_STYLES[again % len(LINE_STYLES)],
        )
    ratio = str(profile.index.name).replace("_", " ")
    axes.set(xlabel=ratio, ylabel="share of runs", ylim=(0, 1.02), xscale="log", xlim=(1, last))
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in RATIO_TICKS if tick <= last]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, place: f"{ratio:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
