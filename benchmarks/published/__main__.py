"""Measure published results again, and write the page that compares them.

Usage: python -m benchmarks.published [-o benchmarks/notes/published_results.md] [--only [NAME ...]]
           [--data FOLDER]

Each source is measured by a module beside this one; its rows are kept in ``rows.csv`` as soon as it
has ended. With ``--only`` the rows of all other sources stay as they are; with no name behind it
the page alone is written. All of them take less than an hour on one core.
"""

import argparse
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.published.page import page_of
from benchmarks.published.rows import (
    DATA,
    KEPT,
    NAMES,
    KeptRow,
    find_source,
    read_kept,
    write_kept,
)
from spmilp.files import write_atomically

PAGE = Path("benchmarks/notes/published_results.md")


def main(arguments: Sequence[str] | None = None, kept: Path = KEPT) -> None:
    """Measure what is asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    parser.add_argument("--only", nargs="*", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--data", type=Path, default=DATA, help="folder of published inputs")
    given = parser.parse_args(arguments)
    for name in NAMES if given.only is None else given.only:
        measured = _measured(name, given.data)
        write_kept((*(one for one in read_kept(kept) if one.source != name), *measured), kept)
    write_atomically(given.output, page_of(read_kept(kept)))


def _measured(name: str, data: Path) -> list[KeptRow]:
    found, revision = [], _revision()
    for row in find_source(name).rows(data):
        print(f"{name}: {row.quantity}: published {row.published}, ours {row.ours}", flush=True)
        found.append(KeptRow(source=name, row=row, revision=revision))
    return found


def _revision() -> str:
    """Return the short name of the commit in the working folder."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
