"""``spmilp compare``: solvers side by side on the same problems."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read


def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL.onnx|PROBLEM.json...",
            help="ONNX models, onnx:NAME for graphs of the onnx package, or problem files.",
            show_default=False,
        ),
    ],
    machine: arguments.Machine = None,
    dim: arguments.Dim = None,
    solvers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names of solvers, as for solve --solver.")
    ] = "greedy:contiguous/layer_by_layer,list,cpsat",
    objective: arguments.Objective = None,
    time_limit: arguments.TimeLimit = 60.0,
    gap: arguments.Gap = 0.0,
    seed: arguments.Seed = 0,
    workers: arguments.Workers = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.csv", dir_okay=False, help="Write one row per run."
        ),
    ] = None,
    as_json: arguments.AsJson = False,
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
