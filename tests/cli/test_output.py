"""What is printed: numbers as people read them, and text from files."""

import pytest

from spmilp import quantities
from spmilp.cli import output as out


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
