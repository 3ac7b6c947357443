"""Performance profiles: how often each solver is within a factor of the best."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from spmilp.report.figures import grid_of_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def profile_figure(profile: pd.DataFrame) -> "Figure":
    """Draw a :func:`performance_profile` as one staircase per solver.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    figure, (axes,) = grid_of_axes(1, 1, (4.0,))
    last = profile.index[-1] * 1.02
    for solver in profile.columns:
        shares = [*profile[solver], profile[solver].iloc[-1]]
        axes.step([*profile.index, last], shares, where="post", label=str(solver))
    ratio = str(profile.index.name).replace("_", " ")
    axes.set(xlabel=ratio, ylabel="share of runs", ylim=(0, 1.02), xlim=(1, last))
    axes.legend(loc="lower right")
    return figure
