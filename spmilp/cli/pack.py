"""``spmilp pack``: offsets for buffers with given lifetimes."""

import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import interrupts_noted, writing
from spmilp.cli.output import ProgressLine, progress_line
from spmilp.errors import ExitCode

if TYPE_CHECKING:
    from spmilp.packing import Packing, PackingOptions, PackingProblem
    from spmilp.packing.minimalloc import Table

STANDARD_STREAM = "-"
"""In place of a file name: stdin, or stdout."""

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
            "offset,alignment,gaps,apart,together. The columns may be in any order; others are "
            "kept as they are. "
            "- for stdin.",
            show_default=False,
        ),
    ],
    capacity: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            "-c",
            parser=arguments.byte_count,
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
    reserved: Annotated[
        list[str] | None,
        typer.Option(
            "--reserve",
            metavar="FROM-TO",
            help="Bytes that no buffer may touch, from the first to the one after the last: 0-4KiB "
            "(repeat).",
            show_default="none",
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
    heuristic: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Pack by one published heuristic alone: xla, tflite, usmp:greedy_by_size, "
            "usmp:greedy_by_conflicts, usmp:hill_climb.",
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
    if capacity is None and not minimise:
        raise typer.BadParameter("say --capacity BYTES, or --minimise, or both")
    if output == STANDARD_STREAM and as_json:
        raise typer.BadParameter("--json and -o - would both print on stdout; name a file")

    taken = arguments.reserved_ranges(reserved or ())
    from spmilp import packing
    from spmilp.cli.pack_answer import PackAnswer
    from spmilp.files import require_room, write_atomically
    from spmilp.packing.minimalloc import text_with_offsets

    if output is not None and output != STANDARD_STREAM:
        require_room(Path(output).parent, [Path(output).name])
    started = time.perf_counter()
    with interrupts_noted() as interrupts, progress_line() as progress:
        progress.say(f"reading {file}")
        table = _table(file, ignore_offsets=ignore_offsets)
        problem = packing.PackingProblem(
            items=table.items,
            capacity=capacity,
            reserved=taken,
            together=table.together,
            apart=table.apart,
        )
        options = packing.PackingOptions(
            time_limit=None if math.isinf(time_limit) else time_limit,
            node_limit=node_limit,
            seed=seed,
            workers=workers,
        )
        found = _packing(problem, options, progress, heuristic, minimise=minimise)
        interrupts.finishing = True
        progress.say("checking the offsets")
        offsets = found.offsets
        violations = () if offsets is None else tuple(packing.check_packing(problem, offsets))
        good = offsets is not None and not violations
        text = text_with_offsets(table, offsets) if offsets is not None and good else ""
        written = output if good and output != STANDARD_STREAM else None
        if written is not None:
            with writing(Path(written)):
                write_atomically(written, text)
    answer = PackAnswer(
        name=str(file),
        table=table,
        problem=problem,
        packing=found,
        violations=violations,
        file=written,
        minimise=minimise,
        seconds=time.perf_counter() - started,
        interrupted=interrupts.code is not None,
    )
    if not good:
        out.print_error(f"{file}: {answer.failure()}")
    if as_json:
        out.print_json(answer.data())
    elif good and output == STANDARD_STREAM:
        sys.stdout.write(text)
    elif good:
        answer.print_tables(out.console())
    # The code says a defect of ours first, then a signal, then what the search says.
    if violations:
        raise typer.Exit(ExitCode.INTERNAL)
    if interrupts.code is not None:
        raise typer.Exit(interrupts.code)
    if found.status is packing.PackingStatus.INFEASIBLE:
        raise typer.Exit(ExitCode.INFEASIBLE)
    raise typer.Exit(ExitCode.OK if good else ExitCode.LIMIT_WITHOUT_PLAN)


def _table(file: Path, *, ignore_offsets: bool) -> "Table":
    from spmilp.packing.minimalloc import parse_table, read_table

    if str(file) == STANDARD_STREAM:
        table = parse_table(sys.stdin.buffer.read(), "stdin")
    else:
        table = read_table(file)
    if not ignore_offsets:
        return table
    return replace(table, items=tuple(replace(item, offset=None) for item in table.items))


def _packing(
    problem: "PackingProblem",
    options: "PackingOptions",
    progress: ProgressLine,
    heuristic: str | None,
    *,
    minimise: bool,
) -> "Packing":
    from spmilp import packing
    from spmilp.packing.portfolio import pack_fixed

    if heuristic is not None:
        try:
            return packing.pack_by(heuristic, problem, options)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    if problem.items and all(item.offset is not None for item in problem.items):
        return pack_fixed(problem)
    progress.say("packing (the first run that searches compiles the search for some ten seconds)")
    return (packing.minimise if minimise else packing.pack)(problem, options)
