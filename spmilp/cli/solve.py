"""``spmilp solve``: from a model or a problem file to a checked plan in a folder."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import options as read
from spmilp.cli.options import Tiles
from spmilp.problem.objective import Quantity


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
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME|FILE.yaml",
            help="A preset (see spmilp machines) or a machine file. A problem file carries its own "
            "machine.",
            show_default="mesh4x4",
        ),
    ] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", metavar="NAME=SIZE", help="Size of a dynamic dimension (repeat)."),
    ] = None,
    solver: Annotated[str, typer.Option(help="Which solver.")] = "auto",
    tiles: Annotated[
        Tiles | None,
        typer.Option(
            help="Tile sizes by a first estimate, or by a search that takes up to 40% of the time.",
            show_default="search with --solver auto, else first",
        ),
    ] = None,
    objective: Annotated[
        Quantity | None,
        typer.Option(
            help="What to make small.",
            show_default="makespan, or what the problem file says",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            parser=read.duration,
            metavar="DURATION",
            help="Limit on the search: 60s, 5m, 1h, none.",
            show_default="60s",
        ),
    ] = 60.0,
    gap: Annotated[
        float,
        typer.Option(
            parser=read.share,
            metavar="SHARE",
            help="Stop when (objective - bound) / objective is at most this: 0.01 or 1%.",
        ),
    ] = 0.0,
    strict_gap: Annotated[
        bool, typer.Option("--strict-gap", help="Exit code 6 when the gap is above --gap.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Threads; 1 makes runs repeatable.")] = 1,
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Map a network onto a machine: load, lower, solve, check, write.

    Writes OUTDIR/problem.json and OUTDIR/plan.json once the checker has
    accepted the plan. Ctrl-C ends the search; the best plan so far is checked
    and written.
    """
    from spmilp.cli.solving import Request, run

    request = Request(
        source=source,
        machine=machine,
        dims=read.dimensions(dim or ()),
        solver=solver,
        tiles=tiles or (Tiles.SEARCH if solver == "auto" else Tiles.FIRST),
        objective=objective,
        time_limit=time_limit,
        gap=gap,
        strict_gap=strict_gap,
        seed=seed,
        workers=workers,
        outdir=outdir,
        write_model=write_model,
        as_json=as_json,
    )
    raise typer.Exit(run(request))
