"""Numbers as people read them."""

import pytest

from spmilp import quantities
from spmilp.cli import output


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (10_239, "10,239 B"),
        (10_240, "10.0 KiB"),
        (524_288, "512.0 KiB"),
        (3 * 2**20, "3.0 MiB"),
        (5 * 2**40, "5,120.0 GiB"),
    ],
)
def test_bytes_have_a_binary_unit(number: int, text: str) -> None:
    assert quantities.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.0, "2 s"), (0.01234, "12.34 ms"), (72e-6, "72 µs"), (3e-9, "3 ns"), (0.0, "0 ns")],
)
def test_times_have_a_fitting_unit(seconds: float, text: str) -> None:
    assert quantities.time(seconds) == text


def test_one_of_something_is_singular() -> None:
    assert (quantities.count(1, "task"), quantities.count(2000, "task")) == (
        "1 task",
        "2,000 tasks",
    )


def test_frequencies_are_in_megahertz_or_gigahertz() -> None:
    assert (quantities.frequency(600_000_000), quantities.frequency(1_450_000_000)) == (
        "600 MHz",
        "1.45 GHz",
    )


def test_cells_of_a_table_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.console().print(output.table(("name",), [("conv[red]1[/]",)]))
    assert "conv[red]1[/]" in capsys.readouterr().out


def test_an_error_goes_to_stderr_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_error("conv[0]: 70,656 B > 65,536 B")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "error: conv[0]: 70,656 B > 65,536 B\n")


def test_text_from_files_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "conv\x1b[2J\x07\x9b\u202ecba\nsecond line"
    output.print_error(name)
    output.print_line(name)
    output.console().print(output.table(("name",), [(name,)]))
    output.console().print(name, markup=False)
    captured = capsys.readouterr()

    shown = "conv\\u001b[2J\\u0007\\u009b\\u202ecba\n"
    assert captured.err.startswith(f"error: {shown}")
    assert captured.out.count("conv\\u001b[2J\\u0007\\u009b\\u202ecba") == 3
    assert not set("\x1b\x07\x9b\u202e") & set(captured.out + captured.err)
