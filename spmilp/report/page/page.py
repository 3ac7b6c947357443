"""The report as one text that needs nothing else: no file, no server, no network."""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from spmilp.analysis.analyse import analyse
from spmilp.files import write_atomically
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.answer_table import Row
from spmilp.report.page.contents import contents
from spmilp.report.search_log import LogEntry

SCRIPTS = ("model", "view", "canvas", "timeline", "memory", "details", "tables", "main")
"""The scripts, in the order in which they need each other."""

HEIGHT = 900
"""Pixels of a page inside a notebook."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report; a notebook shows it."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page, and return where it is.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        write_atomically(path, self.html)
        return Path(path)

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} characters)"

    def _repr_html_(self) -> str:
        style = "width:100%;border:1px solid #ccc"
        return f'<iframe srcdoc="{escape(self.html)}" height="{HEIGHT}" style="{style}"></iframe>'


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above everything else, and what only the solve knows.

    Parameters
    ----------
    rows
        The figures of the answer.
    log
        What the search has found, where it is known.
    """

    title: str
    rows: Sequence[Row]
    log: Sequence[LogEntry] = ()


def report_page(problem: Problem, plan: Plan, heading: Heading) -> Page:
    """Return the report on a plan that the checker has accepted.

    Names from files reach the page in a compressed table and are shown as text: they cannot be
    taken for markup. The page's own policy forbids it every request.
    """
    shown: dict[str, Any] = contents(analyse(problem, plan))
    shown |= {"rows_of_answer": heading.rows, "log": [astuple(each) for each in heading.log]}
    packed = gzip.compress(json.dumps(shown, separators=(",", ":")).encode(), 6, mtime=0)
    parts = {
        "title": escape(heading.title),
        "style": _asset("page.css"),
        "script": "\n".join(_asset(f"{name}.js") for name in SCRIPTS),
        "plan": b64encode(packed).decode(),
    }
    return Page(re.sub(r"{{(\w+)}}", lambda mark: parts[mark[1]], _asset("page.html")))


def _asset(name: str) -> str:
    return (files("spmilp.report.page") / "assets" / name).read_text(encoding="utf-8")
