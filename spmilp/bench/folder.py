"""The tables of a benchmark's folder, as files and as a summary."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from spmilp.bench.attribution import (
    attributed,
    excess_frame,
    phases_frame,
    sections_of_attribution,
)
from spmilp.bench.best_known import BestKnown, gaps_frame, section_of_gaps
from spmilp.bench.records import FILE, Records
from spmilp.bench.sections import Section, markdown, sections_of, settings_of
from spmilp.bench.tables import progress_frame, runs_frame
from spmilp.comparison.table import csv_of
from spmilp.errors import FileError
from spmilp.files import write_together

Known: TypeAlias = Mapping[str, BestKnown] | None
"""The best makespans by row; ``None`` where gaps are not to be split."""


def tables_of(records: Records, known: Known = None) -> dict[str, pd.DataFrame]:
    """Return the tables of a folder by their names; some only where there is something in them."""
    tables = {"runs": runs_frame(records), "progress": progress_frame(records)}
    if any(attributed(records)):
        tables |= {"attribution": phases_frame(records), "excess": excess_frame(records)}
    if known is not None:
        tables["gaps"] = gaps_frame(records, known)
    return tables


def sections_of_all(tables: Mapping[str, pd.DataFrame], records: Records) -> Iterator[Section]:
    """Yield the sections of the summary of a folder, the most important first.

    Parameters
    ----------
    tables
        Those of :func:`tables_of`.
    """
    yield from sections_of(tables["runs"])
    yield from sections_of_attribution(tables["runs"], records)
    if "gaps" in tables and tables["gaps"]["gap"].notna().any():
        yield section_of_gaps(tables["gaps"])


def write_tables(records: Records, known: Known = None) -> None:
    """Write the tables of a folder as CSV, and ``summary.md``.

    Raises
    ------
    FileError
        If one of them cannot be written.
    """
    tables = tables_of(records, known)
    contents = {f"{name}.csv": csv_of(table) for name, table in tables.items()}
    page = list(sections_of_all(tables, records))
    summary = markdown(page, "Benchmark", settings_of(tables["runs"]))
    write_together(records.folder, {**contents, "summary.md": summary})


def read_recorded(folder: Path) -> Records:
    """Return the records of a folder.

    Raises
    ------
    FileError
        If no benchmark has been run there.
    """
    records = Records(folder)
    if not any(True for _ in records):
        raise FileError(f"{folder}: no benchmark has been run there (no {FILE})")
    return records


def read_runs(folder: Path) -> pd.DataFrame:
    """Return the table of runs of a folder.

    Raises
    ------
    FileError
        If no benchmark has been run there.
    """
    return runs_frame(read_recorded(folder))
