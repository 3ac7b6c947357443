"""``spmilp pack``: offsets for buffers with given lifetimes."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read

EXAMPLES = """\
Examples:

do they fit, and where:  spmilp pack in.csv -c 1MiB -o out.csv

how little is enough:  spmilp pack in.csv --minimise

both, for longer:  spmilp pack in.csv --minimise -c 1MiB --time-limit 5m

are these offsets valid:  spmilp pack out.csv -c 1MiB

find better ones:  spmilp pack out.csv --minimise --ignore-offsets -o out.csv"""


def pack(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.csv",
            help="Buffers, one on each line: id,lower,upper,size and, where wanted, "
            "offset,alignment,gaps. The columns may be in any order; others are kept as they are. "
            "- for stdin.",
            show_default=False,
        ),
    ],
    capacity: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            "-c",
            parser=read.byte_count,
            metavar="BYTES",
            help="Bytes of the memory: 1048576, 0x100000, 64K, 1MiB.",
            show_default="no limit",
        ),
    ] = None,
    minimise: Annotated[
        bool,
        typer.Option("--minimise", "--minimize", help="Find the lowest packing, not just one."),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.csv",
            help="Where to write the file with offsets; - for stdout. It may be FILE.csv itself.",
            show_default="nowhere",
        ),
    ] = None,
    ignore_offsets: Annotated[
        bool,
        typer.Option(
            "--ignore-offsets", help="Place every buffer anew; offsets in the file are not fixed."
        ),
    ] = False,
    time_limit: arguments.TimeLimit = 60.0,
    node_limit: Annotated[
        int | None,
        typer.Option(
            "--node-limit",
            min=1,
            metavar="N",
            help="Limit on the buffers that the search places, all branches counted.",
            show_default="none",
        ),
    ] = None,
    seed: arguments.Seed = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="With 2 or more, CP-SAT works beside the search.")
    ] = 1,
    as_json: arguments.AsJson = False,
) -> None:
    """Find offsets for buffers with given lifetimes, or prove that there are none.

    Reads and writes the CSV of MiniMalloc. Buffers that live at the same time
    share no byte; lifetimes are half-open. A number in the column offset keeps
    that buffer where it is.
    """
    from spmilp.cli.packing import Request, run

    if capacity is None and not minimise:
        raise typer.BadParameter("say --capacity BYTES, or --minimise, or both")
    if output == "-" and as_json:
        raise typer.BadParameter("--json and -o - would both print on stdout; name a file")
    request = Request(
        file=file,
        capacity=capacity,
        minimise=minimise,
        output=output,
        ignore_offsets=ignore_offsets,
        time_limit=time_limit,
        node_limit=node_limit,
        seed=seed,
        workers=workers,
        as_json=as_json,
    )
    raise typer.Exit(run(request))
