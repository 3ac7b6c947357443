"""The table of the best known objectives and bounds; it only ever improves."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from io import StringIO
from pathlib import Path

from spmilp.files import write_atomically
from spmilp.problem.problem import Problem

TABLE = Path(__file__).resolve().parent / "best_known.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of an instance.

    Parameters
    ----------
    quantity
        The first one of its objective, which ``objective`` and ``bound`` are of.
    objective
        Of the best checked plan; ``None`` while there is none.
    bound
        No plan has less.
    status
        ``optimal``, ``feasible``, ``infeasible`` or ``unknown``.
    found_by, bound_by
        The solver of the plan, and the argument or the solver that proves the bound.
    seconds
        Wall time of the run that brought the last change.
    """

    instance: str
    tasks: int
    quantity: str
    objective: int | None = None
    bound: int = 0
    status: str = "unknown"
    found_by: str = ""
    bound_by: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run brought: a checked objective or none, a bound, or a proof that there is no plan.

    Parameters
    ----------
    bound_source
        The argument that proves the bound.
    """

    solver: str
    objective: int | None
    bound: int
    bound_source: str
    infeasible: bool
    seconds: float


class ContradictionError(Exception):
    """A run and the table cannot both be right."""


def new_row(name: str, problem: Problem) -> Row:
    """Return the row of an instance of which nothing is known."""
    return Row(instance=name, tasks=len(problem.tasks), quantity=problem.objective.first.value)


def improved(row: Row, run: Outcome) -> Row:
    """Return the row with what a run adds to it; the same row if that is nothing.

    Raises
    ------
    ContradictionError
        If a plan is below the bound, or there is one where none can be.
    """
    new = row
    if run.objective is not None and (row.objective is None or run.objective < row.objective):
        new = replace(new, objective=run.objective, found_by=run.solver)
    if not row.bound_by or run.bound > row.bound:
        argument = run.bound_source
        by = run.solver if argument == run.solver else f"{run.solver}: {argument}"
        new = replace(new, bound=run.bound, bound_by=by)
    status = _status(new, run.infeasible or row.status == "infeasible")
    if (new, status) == (row, row.status):
        return row
    return replace(new, status=status, seconds=round(run.seconds, 1))


def _status(row: Row, infeasible: bool) -> str:
    if row.objective is None:
        return "infeasible" if infeasible else "unknown"
    if infeasible:
        raise ContradictionError(
            f"{row.instance}: proven infeasible, but {row.found_by} has a plan of {row.objective}"
        )
    if row.bound > row.objective:
        raise ContradictionError(
            f"{row.instance}: bound {row.bound} of {row.bound_by} > objective {row.objective} of "
            f"{row.found_by}"
        )
    return "optimal" if row.bound == row.objective else "feasible"


def read_table(path: Path = TABLE) -> dict[str, Row]:
    """Return the rows by instance; none if there is no file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [_row(entry) for entry in csv.DictReader(file)]
    return {row.instance: row for row in rows}


def write_table(rows: Iterable[Row], path: Path = TABLE) -> None:
    """Write the rows in the order of tasks, then names."""
    names = [field.name for field in fields(Row)]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in sorted(rows, key=lambda row: (row.tasks, row.instance)):
        values = (getattr(row, name) for name in names)
        writer.writerow(["" if value is None else value for value in values])
    write_atomically(path, text.getvalue())


def _row(entry: dict[str, str]) -> Row:
    return Row(
        instance=entry["instance"],
        tasks=int(entry["tasks"]),
        quantity=entry["quantity"],
        objective=int(entry["objective"]) if entry["objective"] else None,
        bound=int(entry["bound"]),
        status=entry["status"],
        found_by=entry["found_by"],
        bound_by=entry["bound_by"],
        seconds=float(entry["seconds"]),
    )
