"""The live line: what it says, and that the time left goes down by itself."""

import time

import pytest
from rich.text import Text

from spmilp.cli.output import ProgressLine
from spmilp.solvers.base import Progress


def shown(line: ProgressLine) -> str:
    text = line.__rich__()
    assert isinstance(text, Text)
    return text.plain


def test_the_line_has_incumbent_bound_gap_and_who_found_it() -> None:
    line = ProgressLine()
    line.improved(Progress(incumbent=2_000, bound=1_500, source="lns"))

    assert shown(line) == "solving: best 2,000, bound 1,500, gap 25.0% (lns)"


def test_the_time_left_is_that_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ProgressLine()
    line.say("reading")
    line.ends_at(100.0)

    monkeypatch.setattr(time, "perf_counter", lambda: 40.0)
    assert shown(line) == "reading, 60 s left"
    monkeypatch.setattr(time, "perf_counter", lambda: 140.0)
    assert shown(line) == "reading, 0 s left"
