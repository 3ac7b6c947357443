"""``spmilp pack --pool``: buffers in several pools at the least cost, or what does not fit."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.arguments import reader
from spmilp.cli.interrupts import Interrupts
from spmilp.errors import FileError

if TYPE_CHECKING:
    from spmilp.packing import PackingOptions, PackingStatus, PackingViolation, PoolPacking
    from spmilp.packing.minimalloc import Table


def pack_into_pools(
    file: Path,
    table: "Table",
    pools: Sequence[str],
    options: "PackingOptions",
    interrupts: Interrupts,
    *,
    heights: bool,
    output: Path | None,
    as_json: bool,
) -> "tuple[PackingStatus, bool]":
    """Pack the buffers of a file; check, show and write the answer.

    Return how the search ended, and whether the checker rejects what it found.
    """
    from spmilp import packing
    from spmilp.files import write_atomically
    from spmilp.packing.minimalloc import text_with_offsets
    from spmilp.packing.pools import pool_of

    there = tuple(map(reader(pool_of), pools))
    try:
        problem = packing.PoolProblem(buffers=table.buffers, pools=there)
    except ValueError as error:
        raise FileError(f"{file}: {error}") from error
    found = packing.pack_pools(problem, options, heights=heights)
    interrupts.finishing = True
    violations = packing.check_pools(problem, found.places or ()) if found.places else []
    good, by_name = found.places is not None and not violations, found.by_name
    if good and output is not None:
        places = by_name.values()
        text = text_with_offsets(table, [at for _, at in places], [name for name, _ in places])
        write_atomically(output, text)
    interrupted = interrupts.code is not None
    data = {
        "input": str(file),
        "buffers": len(table.buffers),
        "pools": [
            {**asdict(pool), "height": (found.heights or (0,))[p], "bytes": sum(_inside(found, p))}
            if good
            else asdict(pool)
            for p, pool in enumerate(there)
        ],
        "status": str(found.status),
        "checked": good,
        "cost": found.cost if good else None,
        "cost_bound": found.cost_bound,
        "heights_bound": found.heights_bound,
        "places": by_name if good else None,
        "left_out": [table.ids[i] for i in found.left_out],
        "least_left_out": found.least_left_out,
        "reason": None if good else _failure(found, violations, interrupted=interrupted),
        "nodes": found.nodes,
        "seconds": round(found.seconds, 3),
        "interrupted": interrupted,
        "violations": [asdict(one) for one in violations],
        "files": [str(output)] if good and output is not None else [],
    }
    if not good:
        out.print_error(f"{file}: {data['reason']}")
    if good or as_json:
        how = f"{found.status}{', interrupted' * interrupted}, checked"
        counts = [(len(table.buffers), "buffer"), (len(there), "pool")]
        title = f"{file}: {', '.join(quantities.count(*one) for one in counts)}, {how}"
        shown = chain([out.styled(title, "bold")], _figures(found, output))
        out.print_answer(data, shown, as_json=as_json)
    return found.status, bool(violations)


def _inside(found: "PoolPacking", pool: int) -> list[int]:
    """Return the sizes of the buffers in a pool."""
    placed = zip(found.problem.buffers, found.places or (), strict=True)
    return [buffer.item.size for buffer, (p, _) in placed if p == pool]


def _failure(
    found: "PoolPacking", violations: "Sequence[PackingViolation]", *, interrupted: bool
) -> str:
    """Say why there are no places to show."""
    if violations:
        lines = [f"  {one.rule}: {one.message}" for one in violations[:10]]
        head = (
            "the checker rejects the places (items are counted from 0). This is a defect of "
            "spmilp, please report it with the file; nothing was written"
        )
        return "\n".join([head, *lines])
    if found.status != "infeasible":
        stop = "interrupted" if interrupted else "limit reached"
        return (
            f"{stop} without a packing, and without a proof that there is none; none costs less "
            f"than {found.cost_bound:,}. Give more time (--time-limit, --node-limit) or bytes."
        )
    return "\n".join(["infeasible: not everything fits", *found.shortage])


def _figures(found: "PoolPacking", written: Path | None) -> Iterator[RenderableType]:
    """Yield the figures for people."""
    cost, heights, low = found.cost or 0, found.heights or (), found.heights_bound
    is_least = "optimal" if cost <= found.cost_bound else "no packing costs less"
    rows = [
        ("cost", f"{cost:,}", "bytes times the cost of their pool"),
        ("lower bound", f"{found.cost_bound:,}", is_least),
    ]
    for p, (pool, height) in enumerate(zip(found.problem.pools, heights, strict=True)):
        sizes, share = _inside(found, p), f"{height / pool.capacity:.1%} of {pool.capacity:,} B"
        buffers = f"{quantities.count(len(sizes), 'buffer')} of {sum(sizes):,} B"
        rows.append((pool.name, f"{height:,} B", f"{share}, {buffers}, cost {pool.cost:,}"))
    if low is not None:
        rows.append(("heights", f"{sum(heights):,} B", f"no packing of this cost below {low:,} B"))
    rows.append(("search", f"{found.nodes:,} nodes", quantities.time(found.seconds)))
    yield out.table(("", "", ""), rows, numbers={1})
    yield f"written: {written}" if written else "The places are shown with -o OUT.csv or --json."
