"""The rows of a sweep as a tidy table: figures, what is not dominated, files."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pandas as pd

from spmilp.amounts import relative_gap
from spmilp.comparison.table import csv_of
from spmilp.errors import ArgumentError
from spmilp.files import write_together
from spmilp.problem.objective import Quantity
from spmilp.sizing.grid import Point
from spmilp.sizing.store import Row
from spmilp.sizing.values import Value

TABLE, PARQUET = "sweep.csv", "sweep.parquet"

FIGURES = ("objective", "bound", "roofline", "makespan", "dram_traffic", "energy", "peak_spm")
WHOLE = (*FIGURES, "tasks", "cores", "spm")
SHORT = {"traffic": "dram_traffic", "peak": "peak_spm"}
"""Names of columns that people may write shorter."""


def sweep_frame(points: Iterable[Point], rows: Mapping[str, Row]) -> pd.DataFrame:
    """Return one row for each point; ``docs/sweep.md`` explains the columns.

    Parameters
    ----------
    rows
        By the keys of points; points without one are left out.
    """
    found = [_cells(point, rows[point.key]) for point in points if point.key in rows]
    frame = pd.DataFrame(found)
    if frame.empty:
        return frame
    whole = dict.fromkeys(WHOLE, "Int64")
    return frame.astype({**whole, "gap": "Float64", "seconds": "Float64", "time_limit": "Float64"})


def mark_undominated(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the table with a column ``pareto``: no other row of the model is as good and better.

    All columns are to be small. Rows without a plan are not marked; of equal rows all are.

    Raises
    ------
    ValueError
        If there is no such column, or it holds no number for any plan.
    """
    names = [column_named(frame, name) for name in columns]
    figures = frame[names].astype("Float64")
    there = frame["makespan"].notna() & figures.notna().all(axis=1)
    marked = pd.Series(False, index=frame.index)
    for _, group in figures[there].groupby([frame["model"], frame["dim"]], sort=False):
        values = group.to_numpy(dtype=float)
        for index, own in zip(group.index, values, strict=True):
            beaten = (values <= own).all(axis=1) & (values < own).any(axis=1)
            marked[index] = not beaten.any()
    return frame.assign(pareto=marked)


def column_named(frame: pd.DataFrame, name: str) -> str:
    """Return the column of numbers that a name stands for.

    Raises
    ------
    ValueError
        If there is none, or it holds nothing to compare.
    """
    wanted = SHORT.get(name, name)
    numbers = [
        str(column)
        for column in frame.columns
        if pd.api.types.is_numeric_dtype(frame[column])
        and not pd.api.types.is_bool_dtype(frame[column])
    ]
    if wanted not in numbers:
        raise ArgumentError(f"pareto {name}: there are {', '.join(numbers)}")
    if wanted == "energy" and not frame["energy"].fillna(0).any():
        raise ArgumentError("pareto energy: the machine states no energies, so it is 0 everywhere")
    return wanted


def write_tables(frame: pd.DataFrame, folder: Path) -> tuple[Path, ...]:
    """Write the table as CSV, and as Parquet where pyarrow is installed; return the files.

    Raises
    ------
    FileError
        If the folder cannot be written.
    """
    contents: dict[str, str | bytes] = {TABLE: csv_of(frame)}
    if find_spec("pyarrow") is not None:
        packed = BytesIO()
        frame.to_parquet(packed, index=False)
        contents[PARQUET] = packed.getvalue()
    return write_together(folder, contents)


def _cells(point: Point, row: Row) -> dict[str, object]:
    options = point.options
    sizes = [spm.size for spm in point.machine.machine.spms if spm.size is not None]
    gap = None
    if row.objective is not None and row.bound is not None:
        gap = round(relative_gap(row.objective, row.bound), 6)
    return {
        "model": point.model,
        "dim": ",".join(f"{name}={size}" for name, size in point.dim),
        "machine": point.base,
        "solver": options.solver,
        "tiles": options.tiles or "",
        "seed": options.seed,
        "time_limit": options.time_limit,
        "spm": max(sizes, default=None),
        **{name: _number(value) for name, value in point.values if name != "spm"},
        "status": row.status,
        "quantity": options.objective or str(Quantity.MAKESPAN),
        **{name: getattr(row, name) for name in ("objective", "bound", "bound_source")},
        "gap": gap,
        **{name: getattr(row, name) for name in (*FIGURES[2:], "tasks", "cores")},
        "seconds": None if row.seconds is None else round(row.seconds, 3),
        "handed_on": row.handed_on,
        "reason": row.reason,
        "row": row.key,
    }


def _number(value: Value) -> object:
    return float(value) if isinstance(value, Fraction) else value
