"""The files of a benchmark's folder that people and programs read."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from spmilp.bench.child import CRASHED
from spmilp.bench.records import FILE, Records
from spmilp.bench.sections import markdown, sections_of, settings_of
from spmilp.bench.tables import progress_frame, runs_frame
from spmilp.errors import FileError
from spmilp.files import write_all_atomically


def write_tables(records: Records) -> None:
    """Write ``runs.csv``, ``progress.csv`` and ``summary.md`` of all records of a folder.

    Raises
    ------
    FileError
        If one of them cannot be written.
    """
    runs = runs_frame(records)
    tables = {"runs.csv": runs, "progress.csv": progress_frame(records)}
    contents: dict[Path, str | bytes] = {
        records.folder / name: table.to_csv(index=False, lineterminator="\n")
        for name, table in tables.items()
    }
    page = markdown(list(sections_of(runs)), "Benchmark", settings_of(runs))
    write_all_atomically({**contents, records.folder / "summary.md": page})


def read_runs(folder: Path) -> pd.DataFrame:
    """Return the table of runs of a folder.

    Raises
    ------
    FileError
        If no benchmark has been run there.
    """
    runs = runs_frame(Records(folder))
    if runs.empty:
        raise FileError(f"{folder}: no benchmark has been run there (no {FILE})")
    return runs


def defects(frame: pd.DataFrame) -> Iterable[str]:
    """Say what no run may show: a crash, a plan that breaks rules, one below a proven bound."""
    for _, row in frame[frame["status"] == CRASHED].iterrows():
        yield f"{_who(row)}: crashed: {row['reason']}"
    for _, row in frame[frame["violations"] > 0].iterrows():
        yield f"{_who(row)}: the checker rejects the plan: {row['reason']}"
    for _, row in frame[(frame["gap"] < 0).fillna(value=False)].iterrows():
        what = f"a valid plan of {row['objective']:,} below the bound {row['bound']:,}"
        yield f"{_who(row)}: {what} ({row['bound_source']})"


def _who(row: "pd.Series[Any]") -> str:
    return f"{row['instance']}, {row['solver']}, seed {row['seed']}"
