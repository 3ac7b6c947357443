"""Options that several verbs have: one name, one reader, one help text."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from spmilp.cli import options as read
from spmilp.problem.objective import Quantity

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
Dim: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="Size of a dynamic dimension (repeat)."),
]
Passes: TypeAlias = Annotated[
    str,
    typer.Option(
        "--passes",
        metavar="LIST",
        help="Passes over the network, where not all are on: fuse=tvm or fuse=none, "
        "no-batch_norm, no-simplify, no-cse, no-layout, no-sharing.",
        show_default="all on",
    ),
]
Objective: TypeAlias = Annotated[
    Quantity | None,
    typer.Option(
        help="What to make small.", show_default="makespan, or what the problem file says"
    ),
]
Hint: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--hint",
        metavar="PLAN.json|OUTDIR",
        help="Begin with this plan, also of another machine or objective; for a model with its "
        "problem.json beside it, whose tiles are tried, too.",
        show_default="none",
    ),
]
Pins: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.yaml",
        dir_okay=False,
        help="What the plan has to keep to: cores of tasks, memories of buffers, tiles.",
        show_default="none",
    ),
]
Lock: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--lock",
        metavar="PLAN.json|OUTDIR",
        help="Keep the addresses of this earlier plan where that is possible, and say what it "
        "costs; its problem.json lies beside it.",
        show_default="none",
    ),
]
LockBuffers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--lock-buffers",
        metavar="PATTERN",
        help="Lock the buffers and tensors of these names (repeat); * stands for anything.",
        show_default="all",
    ),
]
LockCost: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--lock-cost",
        parser=read.share,
        metavar="SHARE",
        help="Let the lock make the plan longer by at most this: 0.05 or 5%.",
        show_default="any",
    ),
]
TimeLimit: TypeAlias = Annotated[
    float,
    typer.Option(
        "--time-limit",
        parser=read.duration,
        metavar="DURATION",
        help="Limit on each search: 60s, 5m, 1h, none.",
        show_default="60s",
    ),
]
MemoryLimit: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--memory-limit",
        parser=read.byte_count,
        metavar="SIZE",
        help="End the search when the process uses most of so much memory: 2GiB, 500MiB.",
        show_default="none",
    ),
]
Gap: TypeAlias = Annotated[
    float,
    typer.Option(
        parser=read.share,
        metavar="SHARE",
        help="Stop when (objective - bound) / objective is at most this: 0.01 or 1%.",
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Seed of the search.")]
Workers: TypeAlias = Annotated[int, typer.Option(min=1, help="Threads; 1 makes runs repeatable.")]
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
