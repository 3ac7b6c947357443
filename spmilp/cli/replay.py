"""``spmilp replay``: does a plan compute the right numbers?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.cli import output as out
from spmilp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spmilp.checker.values.compare import Difference


def replay(
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN.json", help="The plan, or its folder.", show_default=False),
    ],
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL.onnx", help="The model that it was made for.", show_default=False
        ),
    ],
    problem: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Its problem.", show_default="problem.json beside the plan"
        ),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE.npz",
            help="Values of the network's inputs, one array each, and perhaps of its outputs.",
            show_default="random values",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random values.")] = 0,
    delays: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="SEED",
            help="Run it also by its command lists, with random delays from this seed on.",
            show_default="no delays",
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Runs with random delays, each with a seed of its own.")
    ] = 1,
    dim: arguments.Dim = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Run a plan on real numbers and compare its outputs with onnxruntime's.

    Exit code 7 when an output differs by more than the tolerance, when the plan
    reads bytes that are not there, or when delays change an output.
    """
    from spmilp.checker.values.compare import replay_plan
    from spmilp.plan.read import open_pair

    delay_seeds = range(0) if delays is None else range(delays, delays + runs)
    opened, answer = open_pair(plan, problem)
    differences = replay_plan(
        opened,
        answer,
        model,
        dims=read.dimensions(dim or ()),
        values=values,
        seed=seed,
        delay_seeds=delay_seeds,
    )
    _print(plan, differences, len(delay_seeds), as_json=as_json)
    if not all(difference.within for difference in differences):
        raise typer.Exit(ExitCode.PLAN_INVALID)


def _print(plan: Path, differences: "Sequence[Difference]", delayed: int, *, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        outputs = [
            {**asdict(each), "within": each.within, "absolute": out.finite(each.absolute)}
            | {"relative": out.finite(each.relative)}
            for each in differences
        ]
        within = all(each.within for each in differences)
        answer = {"plan": str(plan), "within": within, "delayed_runs": delayed}
        out.print_json({**answer, "outputs": outputs})
        return
    rows = [
        (
            each.name,
            "x".join(map(str, each.shape)),
            each.dtype,
            f"{each.absolute:.3g}",
            f"{each.relative:.3g}",
            f"{each.allowed:.3g}",
            "within" if each.within else "OUTSIDE",
        )
        for each in differences
    ]
    headings = ("output", "shape", "type", "largest difference", "relative", "allowed", "")
    out.console().print(out.table(headings, rows, numbers={3, 4, 5}))
    if delayed:
        runs = quantities.count(delayed, "run")
        out.print_line(f"{runs} with random delays: the same outputs, bit for bit")
