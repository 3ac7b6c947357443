"""``spmilp compare``: solvers side by side on the same problems."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import options as read
from spmilp.problem.objective import Quantity


def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL.onnx|PROBLEM.json...",
            help="ONNX models, onnx:NAME for graphs of the onnx package, or problem files.",
            show_default=False,
        ),
    ],
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME|FILE.yaml",
            help="A preset or a machine file, for the models.",
            show_default="mesh4x4",
        ),
    ] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", metavar="NAME=SIZE", help="Size of a dynamic dimension (repeat)."),
    ] = None,
    solvers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names of solvers, as for solve --solver.")
    ] = "greedy:blocks/layers,list,cpsat",
    objective: Annotated[
        Quantity | None,
        typer.Option(
            help="What to make small.", show_default="makespan, or what the problem file says"
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            parser=read.duration,
            metavar="DURATION",
            help="Limit on each run: 60s, 5m, 1h, none.",
            show_default="60s",
        ),
    ] = 60.0,
    gap: Annotated[
        float,
        typer.Option(
            parser=read.share,
            metavar="SHARE",
            help="A run stops when (objective - bound) / objective is at most this.",
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every run.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Threads of each run.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.csv", dir_okay=False, help="Write one row per run."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Run solvers on the same problems, check every plan, and compare.

    Each run starts anew and has the same limits. The bound of an instance is
    the best that any of the solvers proved.
    """
    from spmilp.cli.comparing import Request, run

    request = Request(
        sources=tuple(sources),
        machine=machine,
        dims=read.dimensions(dim or ()),
        solvers=read.names(solvers),
        objective=objective,
        time_limit=time_limit,
        gap=gap,
        seed=seed,
        workers=workers,
        output=output,
        as_json=as_json,
    )
    raise typer.Exit(run(request))
