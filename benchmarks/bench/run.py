"""Runs of a suite: each a job in a process of its own; their table and their summary."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from benchmarks.bench.suite import GREEDY, SOLVE, ModelOnMachine, Row, make_problem, solve_of
from benchmarks.peers.stream import MissingDataError
from spmilp.files import sha256_of
from spmilp.options import DEFAULT_SOLVER
from spmilp.problem.file import problem_bytes
from spmilp.problem.objective import Quantity
from spmilp.registry import find_solver
from spmilp.report.search_log import LogEntry
from spmilp.runs.frames import compared_frame, geometric_mean, ratio
from spmilp.runs.jobs import REJECTED, Answer, Run, code_version, run_of

SKIPPED = "skipped"
"""The status of a run whose problem is made from data that is not there."""

BEST_GREEDY = "best greedy"
"""The best one-pass rule of each row: a baseline that is only known afterwards."""

SOON = 5.0
"""Seconds after which there should be a plan."""


@dataclass(frozen=True, kw_only=True)
class BenchJob:
    """One solver on one row with one seed; the problem is made in the job's process."""

    row: Row
    solver: str
    seed: int
    data: Path | None = None

    @cached_property
    def key(self) -> str:
        """A hash of the row, the run and the code."""
        hashed = repr((self.row, self.solver, self.seed)) + code_version()
        if isinstance(self.row.source, ModelOnMachine) and Path(self.row.source.model).exists():
            hashed += sha256_of(Path(self.row.source.model))
        return sha256(hashed.encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """What messages call it."""
        seed = f", seed {self.seed}" if len(self.row.seeds) > 1 else ""
        return f"{self.row.name}: {self.solver}{seed}"

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solver."""
        return self.row.time_limit

    def ended(self, status: str, reason: str) -> Run:
        """Return the row of a run without a plan."""
        return Run(
            key=self.key,
            instance=self.row.name,
            solver=self.solver,
            seed=self.seed,
            status=status,
            reason=reason,
        )

    def carry_out(self) -> Answer:
        """Make the problem, solve it, and check the plan; ``about`` of the row is in a file."""
        # Its libraries are loaded before any clock starts.
        find_solver(DEFAULT_SOLVER if self.solver == SOLVE else self.solver)
        try:
            problem, roofline = make_problem(self.row.source, self.row.objective, self.data)
        except MissingDataError as error:
            return Answer(self.ended(SKIPPED, str(error)))
        result = solve_of(self.row, self.solver, self.seed, problem)()
        run = run_of(result, instance=self.row.name, seed=self.seed, key=self.key)
        return Answer(replace(run, solver=self.solver, roofline=roofline))


def jobs_of(rows: Iterable[Row], data: Path | None) -> list[BenchJob]:
    """Return all runs of some rows, row by row."""
    return [
        BenchJob(row=row, solver=solver, seed=seed, data=data)
        for row in rows
        for solver in row.solvers
        for seed in row.seeds
    ]


def about(job: BenchJob) -> dict[str, object]:
    """Return the columns that describe a run beside its figures."""
    source, peer = job.row.source, job.row.peer
    found: dict[str, object] = {
        "time_limit": job.row.time_limit,
        "workers": job.row.workers,
        "version": code_version(),
    }
    if isinstance(source, ModelOnMachine):
        found |= {"model": source.model, "machine": source.machine}
    if peer is not None:
        found |= {"peer": peer.name, "peer_objective": peer.value, "peer_source": peer.source}
    return found


def described(row: Row, data: Path | None) -> dict[str, object]:
    """Return what the problem of a row is, whoever solves it."""
    problem, _ = make_problem(row.source, row.objective, data)
    sha256 = sha256_of(problem_bytes(problem))
    sizes = {"tasks": len(problem.tasks), "cores": len(problem.machine.cores)}
    return {"row": row.name, **sizes, "sha256": sha256}


def runs_frame(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row for each run of a store.

    The columns of :func:`~spmilp.runs.frames.compared_frame`, where the runs of ``solve`` have
    tiles, and so a bound, of their own; ``roofline_gap``; ``seconds_to_first``; the primal
    integral; the peer's figure, and what the job is.
    """
    kept = list(lines)
    runs = [msgspec.convert(line, Run) for line in kept]
    own = [replace(run, instance=f"{run.instance}\n{run.solver == SOLVE}") for run in runs]
    frame = compared_frame(own)
    frame["instance"] = [run.instance for run in runs]
    for name in ("model", "machine", "time_limit", "workers", "version", "peer", "peer_objective"):
        frame[name] = [line.get(name) for line in kept]
    frame["roofline"] = pd.array([run.roofline for run in runs], dtype="Int64")
    objective = frame["objective"].astype("Float64")
    frame["roofline_gap"] = (objective - frame["roofline"]) / objective.replace(0, 1)
    frame["ratio_to_peer"] = ratio(objective, frame["peer_objective"].astype("Float64"))
    best = objective.groupby([frame["instance"], frame["solver"] == SOLVE]).transform("min")
    steps = [incumbents(run.log, run.objective) for run in runs]
    frame["seconds_to_first"] = pd.array(
        [found[0][0] if found else None for found in steps], dtype="Float64"
    )
    frame["primal_integral"] = [
        primal_integral(found, None if pd.isna(known) else int(known), limit or run.seconds or 0.0)
        for found, known, limit, run in zip(steps, best, frame["time_limit"], runs, strict=True)
    ]
    return frame


def incumbents(log: Iterable[LogEntry], final: int | None) -> list[tuple[float, int]]:
    """Return when a run had a better plan than before, and its objective.

    Without an accepted plan there is none: improvements that were reported cannot be trusted.
    Nothing that was reported counts as better than the accepted plan.
    """
    found: list[tuple[float, int]] = []
    for entry in log if final is not None else ():
        if entry.incumbent is None:
            continue
        value = max(entry.incumbent, final or 0)
        if not found or value < found[-1][1]:
            found.append((entry.seconds, value))
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
    """
    if best is None:
        return horizon
    total = since = 0.0
    gap = 1.0
    for seconds, objective in steps:
        now = min(seconds, horizon)
        total += gap * (now - since)
        gap, since = (abs(objective - best) / (max(objective, best) or 1)), now
    return total + gap * (horizon - since)


def with_best_greedy(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs, and the best one-pass rule of each instance and seed as one more solver."""
    greedy = frame[frame["solver"].str.startswith(GREEDY) & frame["objective"].notna()]
    best = greedy.sort_values("objective", kind="stable").groupby(["instance", "seed"]).head(1)
    timed = ["seconds", "seconds_to_first", "primal_integral"]
    named = best.sort_index().assign(solver=BEST_GREEDY, **dict.fromkeys(timed))
    return frame if greedy.empty else pd.concat([frame, named.astype(frame.dtypes)])


def summary_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each solver.

    Runs, plans and proofs; geometric means of the ratio to the bound and to the peer; the gap of
    that mean, the worst, and that to the roofline; the median second of the first plan, and how
    many came within five; the mean primal integral.
    """
    rows = []
    for solver, runs in frame.groupby("solver", sort=False):
        solved = runs[runs["objective"].notna()]
        to_bound = geometric_mean(solved["ratio_to_bound"].dropna())
        rows.append(
            {
                "solver": solver,
                "runs": len(runs),
                "plans": len(solved),
                "proven": int((solved["objective"] == solved["bound"]).sum()),
                "ratio_to_bound": to_bound,
                "mean_gap": 1 - 1 / to_bound,
                "worst_gap": solved["gap"].max(),
                "mean_roofline_gap": solved["roofline_gap"].mean(),
                "ratio_to_peer": geometric_mean(solved["ratio_to_peer"].dropna()),
                "seconds_to_first": solved["seconds_to_first"].median(),
                "soon": int((solved["seconds_to_first"] <= SOON).sum()),
                "primal_integral": runs["primal_integral"].mean(),
            }
        )
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def against(now: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each solver: runs that both have, better, equal and worse ones, and the
    geometric mean of the objective before over that of now (above 1 is better)."""
    key = ["instance", "solver", "seed", "quantity"]
    names = [*key, "objective", "seconds_to_first"]
    both = with_best_greedy(now)[names].merge(
        with_best_greedy(before)[names], on=key, suffixes=("", "_before")
    )
    both["times_less"] = ratio(both["objective_before"].astype("Float64"), both["objective"])
    rows = [
        {
            "solver": solver,
            "runs": len(runs),
            "better": int((runs["times_less"] > 1).sum()),
            "equal": int((runs["times_less"] == 1).sum()),
            "worse": int((runs["times_less"] < 1).sum()),
            "before ÷ now": geometric_mean(runs["times_less"].dropna()),
            "first plan before, s": runs["seconds_to_first_before"].median(),
            "now, s": runs["seconds_to_first"].median(),
        }
        for solver, runs in both.groupby("solver", sort=False)
    ]
    return pd.DataFrame(rows)


def defects(frame: pd.DataFrame) -> list[str]:
    """Return a message for each crash, each invalid plan, and each plan below a proven bound."""
    found = []
    for row in frame.itertuples():
        who = f"{row.instance}, {row.solver}, seed {row.seed}"
        if row.status in ("crashed", REJECTED):
            found.append(f"{who}: {row.status}: {row.reason}")
        lowest = row.bound
        if row.quantity == Quantity.MAKESPAN and not pd.isna(row.roofline):
            lowest = row.roofline if pd.isna(lowest) else max(lowest, row.roofline)
        if not pd.isna(row.objective) and not pd.isna(lowest) and row.objective < lowest:
            found.append(f"{who}: a valid plan of {row.objective:,} below the bound {lowest:,}")
    return found


def keep_best(path: Path, frame: pd.DataFrame) -> None:
    """Put makespans that are better than those in a CSV file into it; it is made if missing."""
    runs = frame[(frame["quantity"] == Quantity.MAKESPAN.value) & frame["objective"].notna()]
    found = runs.rename(columns={"instance": "row", "objective": "makespan"})
    # Without a network a row is one problem, and what is proven of it holds for every plan.
    own = found["bound"].where(found["model"].isna())
    found = found.assign(bound=found["roofline"].fillna(own), revision=found["version"])
    columns: Sequence[str] = ["row", "makespan", "bound", "seconds", "revision"]
    kept = [pd.read_csv(path)[columns]] if path.exists() else []
    both = pd.concat([*kept, found[columns].astype(object)]).sort_values(
        ["row", "makespan"], kind="stable"
    )
    both["bound"] = both.groupby("row")["bound"].transform("max")
    both.drop_duplicates("row").to_csv(path, index=False, lineterminator="\n")
