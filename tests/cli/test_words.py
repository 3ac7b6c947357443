"""Words on the command line become values; numbers and text are printed for people."""

import math
from collections.abc import Callable

import pytest

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.errors import ArgumentError
from spmilp.quantities import byte_count, dimensions, duration, share


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (duration, "60s", 60.0),
        (duration, "1.5h", 5400.0),
        (duration, "500ms", 0.5),
        (duration, "none", math.inf),
        (share, "0.01", 0.01),
        (share, "1%", 0.01),
        (share, "1", 1.0),
        (byte_count, "1048576", 2**20),
        (byte_count, "0x100000", 2**20),
        (byte_count, "1.5 MiB", 3 * 2**19),
        (byte_count, "7 B", 7),
    ],
)
def test_a_text_stands_for_a_value(read: Callable[[str], float], text: str, value: float) -> None:
    assert read(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("read", "texts", "said"),
    [
        (duration, ["", "soon", "60x", "-5s", "1e3", "0s", "nan"], "write 60s, 5m, 1h"),
        (share, ["", "%", "-1%", "101%", "1.5", "nan", "inf", "half"], r"write 0\.01 or 1%"),
        (byte_count, ["lots", "", "-1"], "write 1048576, 0x100000 or 1MiB"),
        (byte_count, ["1kB"], "may count by 1000 or by 1024; write KiB"),
    ],
)
def test_what_stands_for_none_is_refused(
    read: Callable[[str], float], texts: list[str], said: str
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=said):
            read(text)


def test_dimensions_are_sizes_by_name() -> None:
    assert dimensions(["batch=1", "a=b=12"]) == {"batch": 1, "a=b": 12}
    with pytest.raises(ArgumentError, match="given as 1 and as 2"):
        dimensions(["batch=1", "batch=2"])


@pytest.mark.parametrize("text", ["batch", "batch=", "=1", "batch=0", "batch=-1", "batch=x", "b=²"])
def test_what_is_no_dimension_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="expected NAME=SIZE"):
        dimensions([text])


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (quantities.size(0), "0 B"),
        (quantities.size(10_240), "10.0 KiB"),
        (quantities.size(5 * 2**40), "5,120.0 GiB"),
        (quantities.time(2.0), "2 s"),
        (quantities.time(72e-6), "72 µs"),
        (quantities.time(3e-9), "3 ns"),
        (quantities.time(0.0), "0 ns"),
        (quantities.count(1, "task"), "1 task"),
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
