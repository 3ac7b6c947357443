"""Solvers side by side on the same problems: ``spmilp.compare``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmilp import pipeline
from spmilp.errors import ArgumentError
from spmilp.options import with_options
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver, refuse_unknown
from spmilp.runs import frames
from spmilp.runs.jobs import REJECTED, Run, run_of
from spmilp.source import MachineGiven, Model
from spmilp.watch import SILENT, Observer, Stage

if TYPE_CHECKING:
    import pandas as pd

SOLVERS = ("greedy:contiguous/layer_by_layer", "list", "cpsat")

_SHOWN = ["instance", "tasks", "solver", "status", "objective", "bound", "gap", "seconds"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Runs of several solvers on the same problems; shows as a table.

    :func:`spmilp.compare` returns it.

    Parameters
    ----------
    all_runs
        As they came: the solvers of the first problem first.
    interrupted
        Whether a ``KeyboardInterrupt`` has cut it short.
    """

    all_runs: tuple[Run, ...]
    interrupted: bool = False

    @cached_property
    def runs(self) -> "pd.DataFrame":
        """A row per run, compared with all runs of its instance; docs/cli.md has the columns."""
        return frames.compared_frame(self.all_runs)

    @cached_property
    def summary(self) -> "pd.DataFrame":
        """A row per solver: plans, proofs, means of ratios."""
        return frames.summary_frame(self.runs)

    @property
    def defects(self) -> tuple[str, ...]:
        """Contradictions: valid plans below a bound that some solver claims to have proven."""
        return frames.contradictions(self.runs)

    @property
    def is_sound(self) -> bool:
        """Whether the checker accepts every plan and no bound is contradicted."""
        return not self.defects and all(run.status != REJECTED for run in self.all_runs)

    def __add__(self, other: "Comparison") -> "Comparison":
        """Return both, each run compared with all runs of its instance in either."""
        return Comparison(
            all_runs=self.all_runs + other.all_runs,
            interrupted=self.interrupted or other.interrupted,
        )

    def __str__(self) -> str:
        return self.runs[_SHOWN].to_string(index=False)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(self.runs[_SHOWN].to_html(index=False))


@with_options("dim", "input", "objective", "time_limit", "effort", "gap", "seed", "workers")
def compare(
    models: Iterable[Model] | Mapping[str, Model],
    machine: MachineGiven = None,
    *,
    solvers: Iterable[str] = SOLVERS,
    observer: Observer = SILENT,
    on_start: Callable[[str, str], None] = lambda instance, solver: None,
    **given: Any,
) -> Comparison:
    """Run every solver on every problem, check every plan, and compare.

    Runs are independent and have the same limits; the tiles of a network are those of the first
    estimate, so that all solvers get the same problem. The bound of an instance is the best that
    any of the solvers proved. A ``KeyboardInterrupt`` ends it with the runs that there are.

    Parameters
    ----------
    models
        ONNX models, problem files or problems, as :func:`spmilp.solve` takes them; by the names
        that they are to have, if it is a mapping.
    solvers
        Their names.
    machine, observer, given
        As for :func:`spmilp.solve`, of whose options these hold for each run: ``dim``,
        ``input``, ``objective``, ``time_limit``, ``effort``, ``gap``, ``seed``, ``workers``.
    on_start
        Called with the instance and the solver before each run.

    Raises
    ------
    ValueError
        If no solver has one of the names, or two problems have the same name.
    SpmilpError
        If a problem cannot be made.

    Examples
    --------
    >>> spmilp.compare(["net.onnx"], "mesh4x4", solvers=["list", "cpsat"], time_limit="30s")
    """
    wanted = tuple(solvers)
    for solver in wanted:
        refuse_unknown(solver, "solvers")
    of_problems = {name: given.pop(name, None) for name in ("dim", "input", "objective")}
    seed = given.setdefault("seed", 0)
    given["workers"] = given.get("workers") or 1
    problems: dict[str, Problem] = {}
    for name, model in _named(models):
        observer.on_stage(Stage.READING)
        problem = pipeline.problem_of(model, machine, **of_problems)
        known_as = name or problem.name
        if known_as in problems:
            raise ArgumentError(f"{model}: another problem is called {known_as!r} as well")
        problems[known_as] = problem
    for solver in wanted:
        find_solver(solver)  # its libraries are loaded before the first clock starts
    runs: list[Run] = []
    try:
        for instance, problem in problems.items():
            for solver in wanted:
                on_start(instance, solver)
                result = pipeline.solve(problem, solver=solver, observer=observer, **given)
                runs.append(run_of(result, instance=instance, seed=seed))
                if result.interrupted:
                    return Comparison(all_runs=tuple(runs), interrupted=True)
    except KeyboardInterrupt:
        if not runs:
            raise
        return Comparison(all_runs=tuple(runs), interrupted=True)
    return Comparison(all_runs=tuple(runs))


def _named(models: Iterable[Model] | Mapping[str, Model]) -> Iterable[tuple[str, Model]]:
    """Return the models with the names that they are given: problem files have theirs."""
    if isinstance(models, Mapping):
        return models.items()
    each = [models] if isinstance(models, str | Path | Problem) else models
    return [(Path(str(one)).stem if _is_file(one) else "", one) for one in each]


def _is_file(one: Model) -> bool:
    return not isinstance(one, Problem) and str(one).endswith(".json")
