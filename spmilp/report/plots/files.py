"""Figures as files: the same figure gives the same bytes."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from spmilp.errors import ArgumentError
from spmilp.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_DATE: dict[str, dict[str, str | None]] = {
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
    ".png": {},
}
"""What keeps the date out of a file, by its ending."""

DOTS_PER_INCH = 150


def write_figure(figure: "Figure", file: Path) -> Path:
    """Write a figure as its file's ending says.

    Raises
    ------
    ArgumentError
        If the ending is none of ``.pdf``, ``.png`` and ``.svg``.
    FileError
        If the file cannot be written.
    """
    require_known_ending(file)
    import matplotlib as mpl

    made = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "spmilp"}):
        ending = file.suffix.lower()
        figure.savefig(made, format=ending[1:], dpi=DOTS_PER_INCH, metadata=NO_DATE[ending])
    write_atomically(file, made.getvalue())
    return file


def require_known_ending(file: Path) -> None:
    """Raise an ``ArgumentError`` unless a figure can be written in a file of that name."""
    if file.suffix.lower() not in NO_DATE:
        raise ArgumentError(f"{file}: a figure is written as {', '.join(NO_DATE)}, a page as .html")
