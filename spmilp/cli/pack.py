"""``spmilp pack``: offsets for buffers with given lifetimes, or in words why there are none."""

import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType
from rich.text import Text

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb
from spmilp.cli.interrupts import interrupts_noted, writing
from spmilp.errors import ExitCode

if TYPE_CHECKING:
    from spmilp.packing import Item, Packing, PackingOptions, PackingProblem, PackingViolation
    from spmilp.packing.minimalloc import Table
    from spmilp.units import Bytes, Cycles

STANDARD_STREAM = "-"
"""In place of a file name: stdin, or stdout."""

MOST_BUFFERS = 30
"""Buffers that get a row of their own when no file takes them."""
MOST_NAMES = 12
"""Buffers that a message names."""
LONGEST_NAME = 40

EXAMPLES = """\
Examples:

do they fit, and where:  spmilp pack in.csv -c 1MiB -o out.csv

how little is enough:  spmilp pack in.csv --minimise

both, for longer:  spmilp pack in.csv --minimise -c 1MiB --time-limit 5m

are these offsets valid:  spmilp pack out.csv -c 1MiB

find better ones:  spmilp pack out.csv --minimise --ignore-offsets -o out.csv"""


@verb(
    file=argument("FILE.csv"),
    capacity=option("-c", parser=arguments.byte_count, metavar="BYTES", show_default="no limit"),
    minimise=option("--minimize"),
    output=option("-o", metavar="OUT.csv", show_default="nowhere"),
    reserve=option(metavar="FROM-TO", show_default="none"),
    node_limit=option(min=1, metavar="N", show_default="none"),
    heuristic=option(metavar="NAME", show_default="none"),
)
def pack(
    file: Path,
    capacity: int | None = None,
    minimise: bool = False,
    output: str | None = None,
    reserve: list[str] | None = None,
    ignore_offsets: bool = False,
    time_limit: float = 60.0,
    node_limit: int | None = None,
    heuristic: str | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Find offsets for buffers with given lifetimes, or prove that there are none.

    Reads and writes the CSV of MiniMalloc. Buffers that live at the same time
    share no byte; lifetimes are half-open. A number in the column offset keeps
    that buffer where it is.

    Parameters
    ----------
    file
        Buffers, one on each line: id,lower,upper,size and, where wanted,
        offset,alignment,gaps. The columns may be in any order; others are kept as
        they are. - for stdin.
    capacity
        Bytes of the memory: 1048576, 0x100000, 64K, 1MiB.
    minimise
        Find the lowest packing, not just one.
    output
        Where to write the file with offsets; - for stdout. It may be FILE.csv itself.
    reserve
        Bytes that no buffer may touch, from the first to the one after the last: 0-4KiB (repeat).
    ignore_offsets
        Place every buffer anew; offsets in the file are not fixed.
    node_limit
        Limit on the buffers that the search places, all branches counted.
    heuristic
        Pack by one published heuristic alone: xla, tflite, usmp:hill_climb.
    """
    if capacity is None and not minimise:
        raise typer.BadParameter("say --capacity BYTES, or --minimise, or both")
    if output == STANDARD_STREAM and as_json:
        raise typer.BadParameter("--json and -o - would both print on stdout; name a file")
    reserved = tuple(map(_range, reserve or ()))
    from spmilp import packing
    from spmilp.files import require_room, write_atomically
    from spmilp.packing.minimalloc import text_with_offsets

    if output is not None and output != STANDARD_STREAM:
        require_room(Path(output).parent, [Path(output).name])
    started = time.perf_counter()
    with interrupts_noted() as interrupts, out.progress_line() as progress:
        progress.say(f"reading {file}")
        table = _table(file, ignore_offsets=ignore_offsets)
        problem = packing.PackingProblem(
            items=table.items,
            capacity=capacity,
            reserved=reserved,
        )
        options = packing.PackingOptions(
            time_limit=None if math.isinf(time_limit) else time_limit,
            node_limit=node_limit,
            seed=seed,
        )
        progress.say("packing (the first run that searches compiles it for some ten seconds)")
        found = _packing(problem, options, heuristic, minimise=minimise)
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
    seconds, interrupted = time.perf_counter() - started, interrupts.code is not None
    reason = "" if good else _failure(table, problem, found, violations, interrupted=interrupted)
    if not good:
        out.print_error(f"{file}: {reason}")
    ids = table.ids
    data = {
        "input": str(file),
        "buffers": len(ids),
        "capacity": capacity,
        "reserved": [list(taken) for taken in reserved],
        "status": str(found.status),
        "checked": good,
        "height": found.height if good else None,
        "bound": found.bound,
        "gap": quantities.relative_gap(found.height or 0, found.bound) if good else None,
        "live_bytes": busiest(table.items)[2],
        "offsets": dict(zip(ids, offsets, strict=True)) if good and offsets is not None else None,
        "conflict": found.conflict and [ids[i] for i in found.conflict],
        "reason": reason or None,
        "source": found.source or None,
        "nodes": found.nodes,
        "restarts": found.restarts,
        "search_seconds": round(found.seconds, 3),
        "seconds": round(seconds, 3),
        "interrupted": interrupted,
        "violations": [
            {"rule": one.rule, "items": [ids[i] for i in one.items], "message": one.message}
            for one in violations
        ],
        "files": [written] if written is not None else [],
    }
    if good and output == STANDARD_STREAM:
        sys.stdout.write(text)
    elif good or as_json:
        verdict = str(found.status) if minimise else "they fit"
        how = f"{verdict}{', interrupted' * interrupted}"
        title = f": {quantities.count(len(ids), 'buffer')}, {how}, "
        said = Text.assemble((out.visible(str(file)), "bold"), title, ("checked", "green"))
        tables = _tables(table, problem, found, written)
        out.print_answer(data, chain([said], tables), as_json=as_json)
    # The code says a defect of ours first, then a signal, then what the search says.
    if violations:
        raise typer.Exit(ExitCode.INTERNAL)
    if interrupts.code is not None:
        raise typer.Exit(interrupts.code)
    if found.status is packing.PackingStatus.INFEASIBLE:
        raise typer.Exit(ExitCode.INFEASIBLE)
    raise typer.Exit(ExitCode.OK if good else ExitCode.LIMIT_WITHOUT_PLAN)


def _range(text: str) -> tuple[int, int]:
    try:
        return quantities.byte_range(text)
    except ValueError as error:
        raise typer.BadParameter(f"--reserve {text}: {error}") from error


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
    problem: "PackingProblem", options: "PackingOptions", heuristic: str | None, *, minimise: bool
) -> "Packing":
    from spmilp import packing

    if heuristic is not None:
        try:
            return packing.pack_by(heuristic, problem, options)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    return (packing.minimise if minimise else packing.pack)(problem, options)


def _failure(
    table: "Table",
    problem: "PackingProblem",
    packing: "Packing",
    violations: "Sequence[PackingViolation]",
    *,
    interrupted: bool,
) -> str:
    """Say why there are no offsets to show."""
    if violations:
        lines = [f"  {found.rule}: {found.message}" for found in violations[:10]]
        count = quantities.count(len(violations), "violation")
        head = (
            f"the checker rejects the offsets ({count}; items are counted from 0). This is a "
            "defect of spmilp, please report it with the file; nothing was written"
        )
        return "\n".join([head, *lines])
    if packing.status == "infeasible":
        return f"infeasible: {why_infeasible(table, problem, packing)}"
    from spmilp.packing.heuristics import HEURISTICS

    capacity, heuristic = problem.capacity, packing.source
    if heuristic in HEURISTICS:
        return (
            f"the heuristic {heuristic} needs more than {capacity:,} B; no packing is lower "
            f"than {packing.bound:,} B. Pack without --heuristic, or give more bytes (--capacity)."
        )
    stop = "interrupted" if interrupted else "limit reached"
    return (
        f"{stop} without offsets inside {capacity:,} B, and without a proof that there are "
        f"none; no packing is lower than {packing.bound:,} B. Give more time (--time-limit, "
        "--node-limit), another --seed, or more bytes (--capacity)."
    )


def _tables(
    table: "Table", problem: "PackingProblem", packing: "Packing", written: str | None
) -> Iterator[RenderableType]:
    """Yield the figures, and the offsets of few buffers, for people."""
    capacity, height = problem.capacity, packing.height or 0
    start, end, live = busiest(problem.items)
    fixed = sum(1 for item in problem.items if item.offset is not None)
    share = f"{height / capacity:.1%} of the capacity {capacity:,} B" if capacity else ""
    gap = quantities.relative_gap(height, packing.bound)
    source = (packing.source or "nothing").replace("_", " ")
    figures = [
        ("height", f"{height:,} B", share),
        ("lower bound", f"{packing.bound:,} B", "no packing is lower"),
        ("gap", quantities.percent(gap), "optimal" if gap == 0 else ""),
        ("live bytes", f"{live:,} B", f"at most, from {start} to {end}"),
        *([("fixed", f"{fixed:,}", "by the column offset")] if fixed else []),
        *([("reserved", _ranges(problem.reserved), "")] if problem.reserved else []),
        (
            "search",
            f"{packing.nodes:,} nodes",
            f"{quantities.time(packing.seconds)}, found by {source}",
        ),
    ]
    yield out.table(("", "", ""), figures, numbers={1}, show_headings=False)
    if written is not None:
        yield f"written: {written}"
    elif len(table.ids) <= MOST_BUFFERS:
        rows = [
            (
                name,
                f"{at:,}",
                f"{at + item.size:,}",
                " ".join(f"[{first}, {last})" for first, last in item.lifetimes),
            )
            for name, item, at in zip(table.ids, table.items, packing.offsets or (), strict=True)
        ]
        yield ""
        yield out.table(("buffer", "offset", "end", "lives"), rows, numbers={1, 2})
    else:
        yield "The offsets are shown with -o OUT.csv, -o - or --json."


def busiest(items: "Iterable[Item]") -> "tuple[Cycles, Cycles, Bytes]":
    """Return the first time span with the most live bytes, and how many; all 0 without items."""
    steps = Counter[int]()
    for item in items:
        for start, end in item.lifetimes:
            steps[start] += item.size
            steps[end] -= item.size
    peak, live = (0, 0, 0), 0
    for start, end in pairwise(sorted(steps)):
        live += steps[start]
        if live > peak[2]:
            peak = (start, end, live)
    return peak


def why_infeasible(table: "Table", problem: "PackingProblem", packing: "Packing") -> str:
    """Name the buffers that cannot be packed together, and say what they need and what there is."""
    capacity, conflict = problem.capacity, packing.conflict or ()
    least = f"no packing of all is lower than {packing.bound:,} B"
    if not conflict:
        return least
    items = [problem.items[i] for i in conflict]
    start, end, peak = busiest(items)
    needs = [f"{sum(item.size for item in items):,} B in all", f"{peak:,} B in [{start}, {end})"]
    fixed = [
        f"{_short(table.ids[i])} at {_ranges([(at, at + problem.items[i].size)])}"
        for i in conflict
        if (at := problem.items[i].offset) is not None
    ]
    if fixed:
        more = f" and {len(fixed) - MOST_NAMES} more" if len(fixed) > MOST_NAMES else ""
        named = ", ".join(fixed[:MOST_NAMES])
        needs.append(f"fixed by the column offset {named}{more} (--ignore-offsets frees them)")
    if problem.reserved:
        needs.append(f"outside {_ranges(problem.reserved)}")
    room = "" if capacity is None else f" inside {capacity:,} B"
    names = _names([table.ids[i] for i in conflict])
    return f"{names} cannot be packed{room}: {', '.join(needs)}; {least}"


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Return half-open ranges as people write them."""
    return ", ".join(f"[{start:,}, {end:,})" for start, end in ranges)


def _names(names: Sequence[str]) -> str:
    shown = [_short(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - MOST_NAMES} more buffers"
    if len(shown) == 1:
        return f"buffer {shown[0]}"
    return f"the {len(shown)} buffers {', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
