"""Options that several verbs have: one name, one reader, one help text."""

from collections.abc import Callable, Iterable
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from spmilp import quantities
from spmilp.options import Options, help_texts
from spmilp.problem.objective import Quantity

T = TypeVar("T")


def reader(read: Callable[[Any], T]) -> Callable[[str], T]:
    """Return a reader that complains as the command line does."""

    def read_or_complain(given: str) -> T:
        try:
            return read(given)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return read_or_complain


duration = reader(quantities.duration)
byte_count = reader(quantities.byte_count)
share = reader(quantities.share)
dimensions = quantities.dimensions


def reserved_ranges(texts: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """Read ``0-4KiB`` and its like as half-open ranges of bytes.

    Raises
    ------
    BadParameter
        If a text is no range, or an empty one.
    """
    ranges = []
    for text in texts:
        try:
            ranges.append(quantities.byte_range(text))
        except ValueError as error:
            raise typer.BadParameter(f"--reserve {text}: {error}") from error
    return tuple(ranges)


def seeds(text: str) -> tuple[int, ...]:
    """Read ``0,1,2``.

    Raises
    ------
    BadParameter
        If there is none, one comes twice, or one is no whole number of 0 or more.
    """
    found = names(text)
    if not all(name.isascii() and name.isdecimal() and len(name) < 10 for name in found):
        raise typer.BadParameter(f"{text!r}: expected whole numbers with commas between them")
    return tuple(int(name) for name in found)


def names(text: str) -> tuple[str, ...]:
    """Read ``a,b,c``.

    Raises
    ------
    BadParameter
        If there is no name, or one comes twice.
    """
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r}: expected different names with commas between them")
    return found


Machine: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--machine",
        "-m",
        metavar="NAME|FILE.yaml",
        help="A preset (see spmilp machines) or a machine file, for a model. A problem file "
        "carries its own machine.",
        show_default="mesh4x4",
    ),
]


def command_option(option: Field[Any]) -> Any:
    """Return what makes an option of a solve one of the command line."""
    shown = dict(option.metadata["shown"])
    if shown.pop("parsed", False):
        shown["parser"] = reader(option.metadata["read"])
    name = f"--{option.name.replace('_', '-')}"
    return typer.Option(name, help=help_texts()[option.name], **shown)


OF_SOLVE = {each.name: command_option(each) for each in fields(Options)}
"""The options of a solve by their names."""


def of_solve(option: Field[Any]) -> Any:
    """Return the annotation of an option of a solve."""
    annotated: Any = Annotated
    return annotated[option.metadata["kind"], OF_SOLVE[option.name]]


Dim: TypeAlias = Annotated[list[str] | None, OF_SOLVE["dim"]]
Passes: TypeAlias = Annotated[str, OF_SOLVE["passes"]]
Objective: TypeAlias = Annotated[Quantity | None, OF_SOLVE["objective"]]
Pins: TypeAlias = Annotated[Path | None, OF_SOLVE["pins"]]
TimeLimit: TypeAlias = Annotated[float, OF_SOLVE["time_limit"]]
Seed: TypeAlias = Annotated[int, OF_SOLVE["seed"]]
Workers: TypeAlias = Annotated[int, OF_SOLVE["workers"]]
Scheduler: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Use the workers of a Dask scheduler: tcp://HOST:8786."),
]
PlanFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="PLAN.json", help="The plan, or its folder.", show_default=False)
]
ProblemFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--problem",
        metavar="FILE",
        help="Its problem.",
        show_default="problem.json beside the plan",
    ),
]
LogFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="FILE.jsonl",
        help="The log of its search, which spmilp solve --log-file has written.",
        show_default="log.jsonl beside the plan, if it is there",
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text.")
]
