"""``spmilp export``: the files that firmware and other tools take from a plan."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import writing

if TYPE_CHECKING:
    from spmilp.export.formats import Exported


def export(
    plan: arguments.PlanFile,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME,...",
            help="Formats (repeat, or separate by commas); all: each that can take the plan.",
            show_default="all",
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
    problem: arguments.ProblemFile = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL.onnx",
            help="The model that it was made for; c, player, c-code and onnx need it.",
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

    Exit code 8 when the plan exceeds a limit of a format that was named: the others are written.
    Exit code 7 when the plan is invalid.
    """
    from spmilp.checker.check import check
    from spmilp.export.errors import InvalidPlanError
    from spmilp.export.formats import ALL, ExportRequest, export_plan, write_export
    from spmilp.plan.file import open_pair

    request = ExportRequest.of(
        formats or [ALL],
        model=model,
        dims=arguments.dimensions(dim or ()),
        prefix=prefix,
        controllers=controller or (),
    )
    opened, answer = open_pair(plan, problem)
    violations = check(opened, answer)
    if violations:
        raise InvalidPlanError(violations)
    made = export_plan(opened, answer, request)
    target = folder or (plan if plan.is_dir() else plan.parent) / "export"
    with writing(target):
        files = write_export(made, target)
    _print(made, files, as_json=as_json)
    made.require_all()


def _print(made: "Exported", files: Iterable[Path], *, as_json: bool) -> None:
    if as_json:
        out.print_json(
            {
                "files": [str(file) for file in files],
                "left_out": [{"format": name, "reason": why} for name, why in made.left_out],
                "failed": [{"format": name, "reason": why} for name, why in made.failed],
                "footprint": made.footprint.fields() if made.footprint else None,
            }
        )
        return
    for file in files:
        out.print_line(f"written: {file}")
    for name, why in made.left_out:
        out.print_line(f"left out: {name}: {why.removeprefix(f'{name}: ')}")
    for line in made.footprint.lines() if made.footprint else ():
        out.print_line(line)
