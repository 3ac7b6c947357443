"""Words on the command line become values, or a message that says what was expected."""

import math
from collections.abc import Callable

import pytest

from spmilp.errors import ArgumentError
from spmilp.quantities import byte_count, dimensions, duration, share


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (duration, "60s", 60.0),
        (duration, "5m", 300.0),
        (duration, "1.5h", 5400.0),
        (duration, "500ms", 0.5),
        (duration, "90", 90.0),
        (duration, "2 min", 120.0),
        (duration, "none", math.inf),
        (share, "0.01", 0.01),
        (share, "1%", 0.01),
        (share, "0", 0.0),
        (share, "1", 1.0),
        (byte_count, "1048576", 2**20),
        (byte_count, "0x100000", 2**20),
        (byte_count, "64k", 2**16),
        (byte_count, "1.5 MiB", 3 * 2**19),
        (byte_count, "2Gi", 2**31),
        (byte_count, "0.5KiB", 512),
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
