"""``spmilp solve``: from a model or a problem file to a checked plan in a folder."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.tile_selection.mode import Tiles


def solve(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL.onnx|PROBLEM.json",
            help="An ONNX model, onnx:NAME for a graph of the onnx package (onnx:light_resnet50), "
            "or a problem file.",
            show_default=False,
        ),
    ],
    machine: arguments.Machine = None,
    dim: arguments.Dim = None,
    solver: Annotated[str, typer.Option(help="Which solver.")] = "auto",
    tiles: Annotated[
        Tiles | None,
        typer.Option(
            help="Tile sizes by a first estimate, or by a search that takes up to 40% of the time.",
            show_default="search with --solver auto, else first",
        ),
    ] = None,
    objective: arguments.Objective = None,
    time_limit: arguments.TimeLimit = 60.0,
    gap: arguments.Gap = 0.0,
    strict_gap: Annotated[
        bool, typer.Option("--strict-gap", help="Exit code 6 when the gap is above --gap.")
    ] = False,
    seed: arguments.Seed = 0,
    workers: arguments.Workers = 1,
    outdir: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUTDIR",
            file_okay=False,
            help="Folder for problem.json and plan.json.",
            show_default="out/NAME-MACHINE",
        ),
    ] = None,
    write_model: Annotated[
        Path | None,
        typer.Option(
            "--write-model",
            metavar="FILE.mps|FILE.lp",
            dir_okay=False,
            help="Write the problem as a MILP as well, before it is solved, for a solver of your "
            "own.",
        ),
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Map a network onto a machine: load, lower, solve, check, write.

    Writes OUTDIR/problem.json and OUTDIR/plan.json once the checker has
    accepted the plan. Ctrl-C ends the search; the best plan so far is checked
    and written.
    """
    from spmilp.cli.solving import Request, run

    request = Request(
        source=source,
        arguments={
            "machine": machine,
            "dim": read.dimensions(dim or ()),
            "solver": solver,
            "tiles": tiles,
            "objective": objective,
            "time_limit": time_limit,
            "gap": gap,
            "seed": seed,
            "workers": workers,
        },
        strict_gap=gap if strict_gap else None,
        outdir=outdir,
        write_model=write_model,
        as_json=as_json,
    )
    raise typer.Exit(run(request))
