"""What is printed: numbers as people read them, tables, and the line of progress."""

import time

import pytest
from rich.text import Text

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.output import ProgressLine, Stacked
from spmilp.solvers.base import Progress


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (quantities.size(0), "0 B"),
        (quantities.size(10_239), "10,239 B"),
        (quantities.size(10_240), "10.0 KiB"),
        (quantities.size(3 * 2**20), "3.0 MiB"),
        (quantities.size(5 * 2**40), "5,120.0 GiB"),
        (quantities.time(2.0), "2 s"),
        (quantities.time(0.01234), "12.34 ms"),
        (quantities.time(72e-6), "72 µs"),
        (quantities.time(3e-9), "3 ns"),
        (quantities.time(0.0), "0 ns"),
        (quantities.count(1, "task"), "1 task"),
        (quantities.count(2000, "task"), "2,000 tasks"),
        (quantities.frequency(600_000_000), "600 MHz"),
        (quantities.frequency(1_450_000_000), "1.45 GHz"),
    ],
)
def test_numbers_have_a_fitting_unit(said: str, text: str) -> None:
    assert said == text


def test_text_from_files_is_no_markup_and_commands_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "conv[red]1[/]\x1b[2J\x07\x9b\u202ecba\nsecond line"
    table = out.table(("name",), [(name,)])
    out.print_error(name)
    out.print_answer(None, [name, table, out.styled(name, "bold")], as_json=False)
    captured = capsys.readouterr()
    shown = "conv[red]1[/]\\u001b[2J\\u0007\\u009b\\u202ecba\n"
    assert captured.err.startswith(f"error: {shown}")
    assert captured.out.count(shown.strip()) == 3
    assert not set("\x1b\x07\x9b\u202e") & set(captured.out + captured.err)


def test_a_table_that_is_too_wide_is_cut_and_each_part_begins_with_the_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "PLAIN_WIDTH", 40)
    headings = ("name", "first", "second", "third")
    rows = [("conv[red]", "1,234,567", "2", "3,456"), ("x" * 60, "7", "89,012", "3")]
    out.print_answer(None, [Stacked(headings, rows, {1, 2, 3})], as_json=False)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, printed)) <= 40
    begins = [line.split()[1] for line in printed if line.startswith(("name", "conv[red]"))]
    assert begins == ["first", "1,234,567", "second", "2", "third", "3,456"]


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
