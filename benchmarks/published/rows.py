"""Rows of the page of published results, kept in a file beside it, and where they come from."""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from io import StringIO
from pathlib import Path

from benchmarks.packing.measure import DATA as DEFAULT_DATA
from spmilp.files import write_atomically

KEPT = Path(__file__).with_suffix(".csv")
"""The rows of the last run of each source."""

DATA = DEFAULT_DATA.parent
"""Where inputs that other projects publish are looked for: ``minimalloc``, ``fjsp``."""

NAMES = (
    "onsram",
    "cosma",
    "rammer",
    "toplib",
    "tvm",
    "calibrate",
    "smaug",
    "cdm",
    "set",
    "stream",
    "minimalloc",
    "usmp",
    "job_shops",
    "policies",
)
"""The sources, each a module beside this one, in the order of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A published figure and ours.

    Parameters
    ----------
    quantity
        What was measured, and on what.
    published
        The figure as it is printed there; "none" where none is, or none that we could read.
    ours
        The same, measured here.
    reason
        Why they differ; empty where they do not.
    """

    quantity: str
    published: str
    ours: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A publication whose figures are measured again.

    Parameters
    ----------
    title
        Its name on the page.
    citation
        Where it was published, and who read the figures where we could not.
    setting
        Machine, networks and limits of our figures, and what they count.
    rows
        Measures, one row at a time; inputs that are no part of the project lie in the folder.
    """

    title: str
    citation: str
    setting: str
    rows: Callable[[Path], Iterable[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRow:
    """A row as it lies in the file: its source, and the revision at which it was measured."""

    source: str
    row: Row
    revision: str


def find_source(name: str) -> Source:
    """Return the source of a module beside this one."""
    source = import_module(f"benchmarks.published.{name}").SOURCE
    if not isinstance(source, Source):
        raise TypeError(f"benchmarks/published/{name}.py: SOURCE is no source of rows")
    return source


def read_kept(path: Path = KEPT) -> tuple[KeptRow, ...]:
    """Return the rows of the last runs; none without a file."""
    if not path.exists():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_kept_rows(csv.DictReader(file)))


def _kept_rows(records: Iterable[dict[str, str]]) -> Iterator[KeptRow]:
    for record in records:
        row = Row(**{field.name: record[field.name] for field in fields(Row)})
        yield KeptRow(source=record["source"], row=row, revision=record["revision"])


def write_kept(kept: Iterable[KeptRow], path: Path = KEPT) -> None:
    """Write rows in the order of the page."""
    text = StringIO()
    columns = ["source", *(field.name for field in fields(Row)), "revision"]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for one in sorted(kept, key=lambda one: NAMES.index(one.source)):
        writer.writerow({"source": one.source, **asdict(one.row), "revision": one.revision})
    write_atomically(path, text.getvalue())
