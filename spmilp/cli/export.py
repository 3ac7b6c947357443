"""``spmilp export``: the files that firmware and other tools take from a plan."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read

if TYPE_CHECKING:
    from spmilp.export.formats import Exported

ALL = "all"


def export(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN.json", help="The plan.", show_default=False)
    ],
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME,...",
            help="Formats (repeat, or separate by commas); all: each that can take the plan.",
            show_default=ALL,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where to write.",
            show_default="the folder export beside the plan",
        ),
    ] = None,
    problem: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Its problem.", show_default="problem.json beside the plan"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL.onnx",
            help="The model that it was made for; onnx and player need it, c and bin say more with "
            "it.",
            show_default=False,
        ),
    ] = None,
    dim: arguments.Dim = None,
    prefix: Annotated[
        str, typer.Option(metavar="NAME", help="What the names of C objects begin with.")
    ] = "spmilp",
    controller: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENGINE=]NAME",
            help="Kind of DMA controller of an engine (or of all); for the format dma (repeat).",
            show_default="what the machine says",
        ),
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Write tables, scripts, descriptors and traces that are made from a plan.

    All files of one call are written, or none. Exit code 8 when the plan exceeds a limit of a
    format that was named; 7 when the plan is invalid.
    """
    from spmilp import pipeline
    from spmilp.cli.plans import open_plan
    from spmilp.export.formats import write_export

    named = _named(formats or [ALL])
    wanted, possible = _wanted(named, has_model=model is not None)
    _is_identifier(prefix)
    controllers = _controllers(controller or [])
    opened, answer = open_plan(plan, problem)
    made = pipeline.export_plan(
        opened,
        answer,
        wanted,
        possible,
        model=model,
        dims=read.dimensions(dim or ()),
        prefix=prefix,
        controllers=controllers,
    )
    files = write_export(made, folder or plan.with_name("export"))
    _print(made, files, as_json=as_json)


def _named(given: Iterable[str]) -> list[str]:
    """Read ``csv,md`` and its like; every name must be known."""
    from spmilp.export.formats import FORMATS

    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in names:
        if name != ALL and name not in FORMATS:
            raise typer.BadParameter(f"--format {name}: there are {', '.join(FORMATS)} and {ALL}")
    if not names:
        raise typer.BadParameter(f"--format: there are {', '.join(FORMATS)} and {ALL}")
    return names


def _wanted(named: Iterable[str], *, has_model: bool) -> tuple[list[str], list[str]]:
    """Return the formats that must be made, and those that are made if possible."""
    from spmilp.export.formats import FORMATS

    wanted = [name for name in named if name != ALL]
    for name in wanted:
        if FORMATS[name].needs_model and not has_model:
            raise typer.BadParameter(f"--format {name} needs the model: add --model MODEL.onnx")
    if ALL not in named:
        return wanted, []
    return wanted, [name for name, each in FORMATS.items() if has_model or not each.needs_model]


def _is_identifier(prefix: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", prefix):
        raise typer.BadParameter(
            f"--prefix {prefix!r}: expected a letter, then at most 30 letters, digits or _"
        )


def _controllers(given: Iterable[str]) -> list[tuple[str, str]]:
    """Read ``NAME`` and ``ENGINE=NAME``; an engine's name may have ``*`` and ``?``."""
    from spmilp.machine.controllers import CONTROLLERS

    found = []
    for text in given:
        engine, equals, name = text.rpartition("=")
        if name not in CONTROLLERS or (equals and not engine):
            raise typer.BadParameter(
                f"--controller {text}: expected NAME or ENGINE=NAME; there are "
                f"{', '.join(CONTROLLERS)}"
            )
        found.append((engine or "*", name))
    return found


def _print(made: "Exported", files: Iterable[Path], *, as_json: bool) -> None:
    from spmilp.cli import output as out

    if as_json:
        out.print_json(
            {
                "files": [str(file) for file in files],
                "left_out": [{"format": name, "reason": why} for name, why in made.left_out],
            }
        )
        return
    for file in files:
        typer.echo(f"written: {file}")
    for name, why in made.left_out:
        typer.echo(f"left out: {name}: {why.removeprefix(f'{name}: ')}")
