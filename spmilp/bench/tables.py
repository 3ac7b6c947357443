"""Records as tidy tables."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from spmilp.bench.child import CRASHED
from spmilp.bench.records import Record
from spmilp.comparison.run import Moment
from spmilp.problem.objective import Quantity

MIB = 2**20

COLUMNS = [
    *("instance", "model", "machine", "dram", "spm", "tiles"),
    *("tasks", "cores", "class", "tight", "work", "traffic", "pressure"),
    *("solver", "seed", "status", "quantity", "objective", "bound", "bound_source", "gap"),
    *("ratio_to_bound", "roofline", "roofline_gap", "ratio_to_roofline"),
    *("peer", "peer_objective", "peer_source", "ratio_to_peer"),
    *(
        "busy",
        "dram_ratio",
        "transfers",
        "violations",
        "seconds_to_first",
        "seconds_to_best",
        "seconds",
    ),
    *("cpu_seconds", "peak_mib", "primal_integral", "own_bound"),
    *("time_limit", "workers", "stop_gap", "version", "problem_sha256", "row_sha256", "reason"),
]
WHOLE = ["objective", "bound", "own_bound", "roofline", "peer_objective", "tasks", "cores", "seed"]
WHOLE += ["work", "traffic", "transfers", "violations", "workers"]
"""Columns of whole numbers, some of them missing."""

REAL = ["gap", "ratio_to_bound", "roofline_gap", "ratio_to_roofline", "ratio_to_peer", "pressure"]
REAL += ["seconds_to_first", "seconds_to_best", "seconds", "cpu_seconds", "peak_mib"]
REAL += ["busy", "dram_ratio", "primal_integral", "time_limit", "stop_gap"]


DIGITS = 6
"""Decimals of ratios and seconds; clocks are not better than that."""


def runs_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row for each run, compared with all runs on the same problem.

    ``docs/benchmarks.md`` explains the columns. The bound of a problem is the best that any solver
    proved, or the network's roofline where that is higher. The runs of ``solve`` have tiles of
    their own, so a problem and a bound of their own.
    """
    kept = list(records)
    strongest: dict[str, tuple[int, str]] = {}
    best: dict[str, int] = {}
    longest: dict[str, float] = {}
    for record in kept:
        problem = _problem(record)
        own = record.bound, record.bound_source
        for bound, source in (own, (_roofline(record), "roofline")):
            if bound is not None and bound > strongest.get(problem, (-1, ""))[0]:
                strongest[problem] = bound, source
        if record.objective is not None:
            best[problem] = min(record.objective, best.get(problem, record.objective))
        longest[problem] = max(record.seconds or 0.0, longest.get(problem, 0.0))
    rows = []
    for record in kept:
        problem = _problem(record)
        row = _statistics(record) | _outcome(record, *strongest.get(problem, (None, "")))
        limit = record.setting.time_limit
        steps = incumbents(record.history, record.objective)
        horizon = longest[problem] if limit is None else limit
        row["primal_integral"] = (
            primal_integral(steps, best.get(problem), horizon) if record.took_place else None
        )
        row["seconds_to_first"] = steps[0][0] if steps else None
        row["seconds_to_best"] = steps[-1][0] if steps else None
        rows.append(row)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    types: dict[str, str] = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(REAL, "Float64")
    return frame.astype({**types, "tight": "boolean"}).round(DIGITS)


def progress_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row for each improvement of each run, in order of time."""
    rows = [
        (record.instance, record.solver, record.seed, seconds, objective)
        for record in records
        for seconds, objective in incumbents(record.history, record.objective)
    ]
    columns = ["instance", "solver", "seed", "seconds", "objective"]
    return pd.DataFrame(rows, columns=columns).round(DIGITS)


def _roofline(record: Record) -> int | None:
    """Return it where it bounds what is minimised."""
    known = record.statistics
    return known.roofline if known and known.quantity == Quantity.MAKESPAN else None


def _problem(record: Record) -> str:
    return record.statistics.problem_sha256 if record.statistics else record.instance


def _statistics(record: Record) -> dict[str, object]:
    """Return the columns of a run that are known before it begins."""
    statistics, setting = record.statistics, record.setting
    row: dict[str, object] = {
        "instance": record.instance,
        "solver": record.solver,
        "seed": record.seed,
        "peer": record.peer,
        "peer_objective": record.peer_objective,
        "peer_source": record.peer_source,
        "time_limit": setting.time_limit,
        "workers": setting.workers,
        "stop_gap": setting.gap,
        "version": setting.version,
        "row_sha256": setting.row_sha256,
        **record.described,
    }
    if statistics is not None:
        names = ("quantity", "tasks", "cores", "tight", "work", "traffic", "pressure", "roofline")
        row |= {name: getattr(statistics, name) for name in (*names, "problem_sha256")}
        row["class"] = statistics.kind
    return row


def _outcome(record: Record, bound: int | None, source: str) -> dict[str, object]:
    """Return how a run ended, seen from the best bound of its problem."""
    objective = record.objective
    roofline = record.statistics.roofline if record.statistics else None
    return {
        "status": record.status,
        "objective": objective,
        "bound": bound,
        "bound_source": source,
        "own_bound": record.bound,
        "gap": _gap(objective, bound),
        "ratio_to_bound": _ratio(objective, bound),
        "roofline_gap": _gap(objective, roofline),
        "ratio_to_roofline": _ratio(objective, roofline),
        "ratio_to_peer": _ratio(objective, record.peer_objective),
        "transfers": record.transfers,
        "busy": record.busy,
        "dram_ratio": record.dram_ratio,
        "violations": record.violations,
        "seconds": record.seconds,
        "cpu_seconds": record.cpu_seconds,
        "peak_mib": None if record.peak_bytes is None else round(record.peak_bytes / MIB, 1),
        "reason": record.reason,
    }


def _gap(objective: int | None, bound: int | None) -> float | None:
    if objective is None or bound is None:
        return None
    return (objective - bound) / objective if objective else 0.0


def _ratio(objective: int | None, to: int | None) -> float | None:
    """Return ``objective / to``; where that is 0, both are counted one higher."""
    if objective is None or to is None:
        return None
    return objective / to if to else objective + 1.0


def primal_gap(objective: int | None, best: int) -> float:
    """Return by how much a plan is worse than the best one known, 0 to 1; 1 without a plan.

    ``|objective - best| / max(|objective|, |best|)``, 0 if both are 0.
    """
    if objective is None:
        return 1.0
    largest = max(abs(objective), abs(best))
    return abs(objective - best) / largest if largest else 0.0


def incumbents(history: Iterable[Moment], final: int | None) -> list[tuple[float, int]]:
    """Return when a run had a better plan than before, and its objective.

    Without an accepted plan there is none: improvements that were reported cannot be trusted.
    Nothing that was reported counts as better than the accepted plan.
    """
    if final is None:
        return []
    found: list[tuple[float, int]] = []
    for moment in history:
        if moment.objective is None:
            continue
        value = max(moment.objective, final)
        if not found or value < found[-1][1]:
            found.append((moment.seconds, value))
    return found


def primal_integral(steps: Iterable[tuple[float, int]], best: int | None, horizon: float) -> float:
    """Return the seconds of the horizon, each weighed by the primal gap at that time.

    From 0 (the best plan at once) to the horizon (no plan at all). T. Berthold, *Measuring the
    impact of primal heuristics*, Operations Research Letters 41 (2013).

    Parameters
    ----------
    steps
        Seconds and objectives of :func:`incumbents`; the last one holds until the horizon.
    best
        The best objective that is known; ``None`` if no plan is.
    horizon
        Seconds; the time limit of the run.
    """
    if best is None:
        return horizon
    total = since = 0.0
    gap = 1.0
    for seconds, objective in steps:
        now = min(seconds, horizon)
        total += gap * (now - since)
        gap, since = primal_gap(objective, best), now
    return total + gap * (horizon - since)


def defects(frame: pd.DataFrame) -> Iterable[str]:
    """Yield a message for each defect: a crash, an invalid plan, a plan below a proven bound."""
    for _, row in frame[frame["status"] == CRASHED].iterrows():
        yield f"{_who(row)}: crashed: {row['reason']}"
    for _, row in frame[frame["violations"] > 0].iterrows():
        yield f"{_who(row)}: the checker rejects the plan: {row['reason']}"
    for _, row in frame[(frame["gap"] < 0).fillna(value=False)].iterrows():
        what = f"a valid plan of {row['objective']:,} below the bound {row['bound']:,}"
        yield f"{_who(row)}: {what} ({row['bound_source']})"


def _who(row: "pd.Series[Any]") -> str:
    return f"{row['instance']}, {row['solver']}, seed {row['seed']}"
