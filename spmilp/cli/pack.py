"""``spmilp pack``: offsets for buffers with given lifetimes, or in words why there are none."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb
from spmilp.cli.interrupts import Interrupts, interrupts_noted
from spmilp.cli.pools import pack_into_pools
from spmilp.errors import ExitCode, FileError

if TYPE_CHECKING:
    from spmilp.packing import Packing, PackingProblem, PackingStatus, PackingViolation
    from spmilp.packing.minimalloc import Table


@verb(
    file=argument("FILE.csv|MODEL.tflite"),
    capacity=option("-c", parser=arguments.byte_count, metavar="BYTES", show_default="no limit"),
    minimise=option("--minimize"),
    pool=option(metavar="NAME=BYTES[,cost=N][,align=BYTES][,reserve=FROM-TO]", show_default="none"),
    output=option("-o", metavar="OUT.csv|OUT.tflite", show_default="nowhere"),
    workspace=option(metavar="OPERATOR=BYTES", show_default="none"),
    reserve=option(metavar="FROM-TO", show_default="none"),
    node_limit=option(min=1, metavar="N", show_default="none"),
)
def pack(
    file: Path,
    capacity: int | None = None,
    minimise: bool = False,
    pool: list[str] | None = None,
    output: Path | None = None,
    reserve: list[str] | None = None,
    workspace: list[str] | None = None,
    ignore_offsets: bool = False,
    time_limit: float = 60.0,
    node_limit: int | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Find offsets for buffers with given lifetimes, or prove that there are none.

    Reads and writes the CSV of MiniMalloc, and models for TensorFlow Lite Micro: what its arena
    holds, as low as possible where no capacity is given. Buffers that live at the same time
    share no byte; lifetimes are half-open. A number in the column offset keeps
    that buffer where it is.

    Parameters
    ----------
    file
        Buffers, one on each line: id,lower,upper,size and, where wanted,
        offset,alignment,gaps,pools. The columns may be in any order; others are kept
        as they are. Or a model, whose plan is replaced.
    capacity
        Bytes of the memory: 1048576, 0x100000, 64K, 1MiB.
    minimise
        Find the lowest packing, not just one.
    pool
        One of several memories (repeat): sram=256K, flash=2M,cost=4,align=64. The cost,
        bytes of buffers times the cost of their pool, is the least; with --minimise
        heights are too. The column pools names those a buffer may lie in: sram|flash.
    output
        Where to write the file with offsets. It may be the input itself.
    reserve
        Bytes that no buffer may touch, from the first to the one after the last: 0-4KiB (repeat).
    workspace
        Bytes that the kernel of a model's operator claims while it runs (repeat). The operator is
        its position, or a name for all of that kind: 3=1K, TRANSPOSE_CONV=4096.
    ignore_offsets
        Place every buffer anew; offsets in the file are not fixed.
    node_limit
        Limit on the buffers that the search places, all branches counted.
    """
    if pool and (capacity is not None or reserve):
        raise typer.BadParameter("a --pool says capacity and reserve itself; leave the options out")
    from spmilp.frontend.tflite.file import is_tflite

    is_model = is_tflite(file)
    minimise |= is_model and capacity is None and not pool
    if workspace and not is_model:
        raise typer.BadParameter(f"--workspace is for operators of a .tflite file, not {file}")
    if is_model and output is not None and (pool or not is_tflite(output)):
        wanted = "one memory; leave --pool or -o out" if pool else f"a .tflite file, not {output}"
        raise typer.BadParameter(f"the plan of a model is for {wanted}")
    if capacity is None and not minimise and not pool:
        raise typer.BadParameter(
            "say --capacity BYTES, or --minimise, or both; or --pool NAME=BYTES"
        )
    reserved, claims = tuple(map(_range, reserve or ())), dict(map(_claim, workspace or ()))
    from spmilp import packing
    from spmilp.compiled import warn_if_slow
    from spmilp.files import require_room, write_atomically
    from spmilp.packing.items import busiest
    from spmilp.packing.minimalloc import read_table

    if output is not None:
        require_room(output.parent, [output.name])
    started = time.perf_counter()
    with interrupts_noted() as interrupts:
        if is_model:
            from spmilp.integrations.tflite import read_arena

            table: Table = read_arena(file, claims)
        else:
            table = read_table(file)
        if ignore_offsets:
            free = (
                replace(one, item=replace(one.item, offset=None), at_end=False)
                for one in table.buffers
            )
            table = replace(table, buffers=tuple(free))
        options = packing.PackingOptions(
            time_limit=None if math.isinf(time_limit) else time_limit,
            node_limit=node_limit,
            seed=seed,
        )
        warn_if_slow(out.print_warning)
        if pool:
            out.say("packing")
            status, is_rejected = pack_into_pools(
                file,
                table,
                pool,
                options,
                interrupts,
                heights=minimise,
                output=output,
                as_json=as_json,
            )
            raise typer.Exit(_code(status, interrupts, is_rejected=is_rejected))
        for one in table.buffers:
            if one.pools or one.at_end:
                where = f"may lie in {', '.join(one.pools)}" if one.pools else "lies at the end"
                raise FileError(f"{file}: buffer {one.name} {where}; say --pool NAME=BYTES")
        problem = packing.PackingProblem(items=table.items, capacity=capacity, reserved=reserved)
        out.say("packing")
        found = (packing.minimise if minimise else packing.pack)(problem, options)
        interrupts.finishing = True
        offsets = found.offsets
        violations = () if offsets is None else tuple(packing.check_packing(problem, offsets))
        if violations:
            offsets = None
        if offsets is not None and output is not None:
            write_atomically(output, table.content(offsets))
    interrupted, good, ids = interrupts.code is not None, offsets is not None, table.ids
    reason = "" if good else _failure(table, problem, found, violations, interrupted=interrupted)
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
        "offsets": None if offsets is None else dict(zip(ids, offsets, strict=True)),
        "conflict": found.conflict and [ids[i] for i in found.conflict],
        "reason": reason or None,
        "source": found.source or None,
        "nodes": found.nodes,
        "seconds": round(time.perf_counter() - started, 3),
        "interrupted": interrupted,
        "violations": [
            {"rule": one.rule, "items": [ids[i] for i in one.items], "message": one.message}
            for one in violations
        ],
        "files": [str(output)] if good and output is not None else [],
    }
    if not good:
        out.print_error(f"{file}: {reason}")
    if good or as_json:
        verdict = str(found.status) if minimise else "they fit"
        how = f"{verdict}{', interrupted' * interrupted}, checked"
        title = out.styled(f"{file}: {quantities.count(len(ids), 'buffer')}, {how}", "bold")
        figures = _figures(problem, found, output)
        out.print_answer(data, chain([title], figures), as_json=as_json)
    raise typer.Exit(_code(found.status, interrupts, is_rejected=bool(violations)))


def _code(status: "PackingStatus", interrupts: Interrupts, *, is_rejected: bool) -> ExitCode:
    """Say a defect of ours first, then a signal, then what the search says."""
    if is_rejected:
        return ExitCode.INTERNAL
    if interrupts.code is not None:
        return interrupts.code
    ends = {"infeasible": ExitCode.INFEASIBLE, "unknown": ExitCode.LIMIT_WITHOUT_PLAN}
    return ends.get(status, ExitCode.OK)


def _range(text: str) -> tuple[int, int]:
    try:
        return quantities.byte_range(text)
    except ValueError as error:
        raise typer.BadParameter(f"--reserve {text}: {error}") from error


def _claim(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    try:
        return name.strip(), quantities.byte_count(size)
    except ValueError as error:
        raise typer.BadParameter(f"--workspace {text}: {error}") from error


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
    stop = "interrupted" if interrupted else "limit reached"
    return (
        f"{stop} without offsets inside {problem.capacity:,} B, and without a proof that there are "
        f"none; no packing is lower than {packing.bound:,} B. Give more time (--time-limit, "
        "--node-limit), another --seed, or more bytes (--capacity)."
    )


def _figures(
    problem: "PackingProblem", packing: "Packing", written: Path | None
) -> Iterator[RenderableType]:
    """Yield the figures for people."""
    from spmilp.packing.items import busiest

    capacity, height = problem.capacity, packing.height or 0
    start, end, live = busiest(problem.items)
    fixed = sum(1 for item in problem.items if item.offset is not None)
    share = f"{height / capacity:.1%} of the capacity {capacity:,} B" if capacity else ""
    gap = quantities.relative_gap(height, packing.bound)
    source = (packing.source or "nothing").replace("_", " ")
    how = f"{quantities.time(packing.seconds)}, found by {source}"
    figures = [
        ("height", f"{height:,} B", share),
        ("lower bound", f"{packing.bound:,} B", "no packing is lower"),
        ("gap", quantities.percent(gap), "optimal" if gap == 0 else ""),
        ("live bytes", f"{live:,} B", f"at most, from {start} to {end}"),
        *([("fixed", f"{fixed:,}", "by the column offset")] if fixed else []),
        *([("reserved", _ranges(problem.reserved), "")] if problem.reserved else []),
        ("search", f"{packing.nodes:,} nodes", how),
    ]
    yield out.table(("", "", ""), figures, numbers={1})
    if written is not None:
        yield f"written: {written}"
    else:
        yield "The offsets are shown with -o OUT.csv or --json."


def why_infeasible(table: "Table", problem: "PackingProblem", packing: "Packing") -> str:
    """Name the buffers that cannot be packed together, and say what they need and what there is."""
    from spmilp.packing.items import busiest

    capacity, conflict = problem.capacity, packing.conflict or ()
    least = f"no packing of all is lower than {packing.bound:,} B"
    if not conflict:
        return least
    items = [problem.items[i] for i in conflict]
    start, end, peak = busiest(items)
    needs = [f"{sum(item.size for item in items):,} B in all", f"{peak:,} B in [{start}, {end})"]
    fixed = [(item.offset, item.offset + item.size) for item in items if item.offset is not None]
    if fixed:
        shown = _ranges(fixed[: quantities.MOST_NAMES])
        needs.append(f"fixed by the column offset at {shown} (--ignore-offsets frees them)")
    if problem.reserved:
        needs.append(f"outside {_ranges(problem.reserved)}")
    room = "" if capacity is None else f" inside {capacity:,} B"
    named = quantities.names([table.ids[i] for i in conflict])
    buffers = f"{quantities.count(len(conflict), 'buffer')} {named}"
    return f"{buffers} cannot be packed{room}: {', '.join(needs)}; {least}"


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Return half-open ranges as people write them."""
    return ", ".join(f"[{start:,}, {end:,})" for start, end in ranges)
