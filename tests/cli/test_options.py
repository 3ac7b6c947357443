"""Words on the command line become values, or a message that says what was expected."""

import math

import pytest
import typer

from spmilp.cli.arguments import dimensions, duration, share
from spmilp.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60.0),
        ("5m", 300.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("90", 90.0),
        ("2 min", 120.0),
    ],
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


def test_no_limit_is_endless() -> None:
    assert duration("none") == math.inf


@pytest.mark.parametrize("text", ["", "soon", "60x", "-5s", "1e3", "0s", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write 60s, 5m, 1h"):
        duration(text)


@pytest.mark.parametrize(("text", "value"), [("0.01", 0.01), ("1%", 0.01), ("0", 0.0), ("1", 1.0)])
def test_a_share_is_a_number_or_a_percentage(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "%", "-1%", "101%", "1.5", "nan", "inf", "half"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"write 0\.01 or 1%"):
        share(text)


def test_dimensions_are_sizes_by_name() -> None:
    assert dimensions(["batch=1", "a=b=12"]) == {"batch": 1, "a=b": 12}


@pytest.mark.parametrize("text", ["batch", "batch=", "=1", "batch=0", "batch=-1", "batch=x", "b=²"])
def test_what_is_no_dimension_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="expected NAME=SIZE"):
        dimensions([text])


def test_one_dimension_has_one_size() -> None:
    with pytest.raises(ArgumentError, match="given as 1 and as 2"):
        dimensions(["batch=1", "batch=2"])
