"""The answer of ``spmilp pack``: tables for people, one object for programs, reasons in words."""

from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.pack_reason import busiest, ranges_text, why_infeasible
from spmilp.packing import Packing, PackingProblem, PackingStatus, PackingViolation
from spmilp.packing.heuristics import HEURISTICS
from spmilp.packing.minimalloc import Table

MOST_BUFFERS = 30
"""Buffers that get a row of their own when no file takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of the command.

    Parameters
    ----------
    name
        What the user calls the input.
    violations
        What the checker finds wrong with the offsets.
    file
        What was written.
    seconds
        Wall time of the command.
    """

    name: str
    table: Table
    problem: PackingProblem
    packing: Packing
    violations: tuple[PackingViolation, ...]
    file: str | None
    minimise: bool
    seconds: float
    interrupted: bool

    @property
    def is_checked(self) -> bool:
        """Whether there are offsets and the checker accepts them."""
        return self.packing.offsets is not None and not self.violations


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print the answer on stdout, and what is wrong on stderr."""
    if not answer.is_checked:
        out.print_error(f"{answer.name}: {_failure(answer)}")
    if as_json:
        out.print_json(_as_object(answer))
    elif answer.is_checked:
        _print_tables(out.console(), answer)


def _failure(answer: Answer) -> str:
    """Say why there are no offsets to show."""
    if answer.violations:
        lines = [f"  {found.rule}: {found.message}" for found in answer.violations[:10]]
        count = quantities.count(len(answer.violations), "violation")
        head = (
            f"the checker rejects the offsets ({count}; items are counted from 0). This is a "
            "defect of spmilp, please report it with the file; nothing was written"
        )
        return "\n".join([head, *lines])
    if answer.packing.status is PackingStatus.INFEASIBLE:
        return f"infeasible: {why_infeasible(answer.table, answer.problem, answer.packing)}"
    heuristic = answer.packing.statistics.source
    if heuristic in HEURISTICS:
        return (
            f"the heuristic {heuristic} needs more than {answer.problem.capacity:,} B; no packing "
            f"is lower than {answer.packing.bound:,} B. Pack without --heuristic, or give more "
            "bytes (--capacity)."
        )
    stop = "interrupted" if answer.interrupted else "limit reached"
    return (
        f"{stop} without offsets inside {answer.problem.capacity:,} B, and without a proof that "
        f"there are none; no packing is lower than {answer.packing.bound:,} B. Give more time "
        "(--time-limit, --node-limit), another --seed, or more bytes (--capacity)."
    )


def _as_object(answer: Answer) -> dict[str, object]:
    """Return the answer for ``--json``; what there is not is null."""
    packing, ids = answer.packing, answer.table.ids
    checked = answer.is_checked
    offsets = packing.offsets if checked else None
    height = packing.height if checked else None
    conflict = packing.conflict
    return {
        "input": answer.name,
        "buffers": len(ids),
        "capacity": answer.problem.capacity,
        "reserved": [list(taken) for taken in answer.problem.reserved],
        "status": str(packing.status),
        "checked": checked,
        "height": height,
        "bound": packing.bound,
        "gap": None if height is None else quantities.relative_gap(height, packing.bound),
        "live_bytes": busiest(answer.problem.items).size,
        "offsets": None if offsets is None else dict(zip(ids, offsets, strict=True)),
        "conflict": None if conflict is None else [ids[i] for i in conflict],
        "reason": None if checked else _failure(answer),
        "source": packing.statistics.source or None,
        "nodes": packing.statistics.nodes,
        "restarts": packing.statistics.restarts,
        "search_seconds": round(packing.statistics.seconds, 3),
        "seconds": round(answer.seconds, 3),
        "interrupted": answer.interrupted,
        "violations": [
            {"rule": found.rule, "items": [ids[i] for i in found.items], "message": found.message}
            for found in answer.violations
        ],
        "files": [answer.file] if answer.file is not None else [],
    }


def _print_tables(to: Console, answer: Answer) -> None:
    how = ", interrupted" if answer.interrupted else ""
    buffers = quantities.count(len(answer.table.ids), "buffer")
    to.print(
        f"[bold]{escape(answer.name)}[/]: {buffers}, {_verdict(answer)}{how}, [green]checked[/]",
        soft_wrap=True,
    )
    to.print(out.table(("", "", ""), _figures(answer), numbers={1}, show_headings=False))
    if answer.file is not None:
        to.print(f"written: {escape(answer.file)}", soft_wrap=True)
    elif len(answer.table.ids) <= MOST_BUFFERS:
        to.print()
        _print_buffers(to, answer)
    else:
        to.print("The offsets are shown with -o OUT.csv, -o - or --json.")


def _verdict(answer: Answer) -> str:
    """Say what was asked for: that they fit, or how good the packing is."""
    return str(answer.packing.status) if answer.minimise else "they fit"


def _figures(answer: Answer) -> list[tuple[str, str, str]]:
    problem, packing, capacity = answer.problem, answer.packing, answer.problem.capacity
    height = packing.height or 0
    live = busiest(answer.problem.items)
    fixed = sum(1 for item in answer.problem.items if item.offset is not None)
    share = f"{height / capacity:.1%} of the capacity {capacity:,} B" if capacity else ""
    gap = quantities.relative_gap(height, packing.bound)
    spent = packing.statistics
    source = (spent.source or "nothing").replace("_", " ")
    return [
        ("height", f"{height:,} B", share),
        ("lower bound", f"{packing.bound:,} B", "no packing is lower"),
        ("gap", quantities.percent(gap), "optimal" if gap == 0 else ""),
        ("live bytes", f"{live.size:,} B", f"at most, from {live.start} to {live.end}"),
        *([("fixed", f"{fixed:,}", "by the column offset")] if fixed else []),
        *[
            (word, quantities.count(len(pairs), "pair"), f"by the column {word}")
            for word, pairs in (("apart", problem.apart), ("together", problem.together))
            if pairs
        ],
        *([("reserved", ranges_text(problem.reserved), "")] if problem.reserved else []),
        (
            "search",
            f"{spent.nodes:,} nodes",
            f"{quantities.time(spent.seconds)}, found by {source}",
        ),
    ]


def _print_buffers(to: Console, answer: Answer) -> None:
    rows = [
        (name, f"{offset:,}", f"{offset + item.size:,}", _lifetimes(item.lifetimes))
        for name, item, offset in zip(
            answer.table.ids, answer.table.items, answer.packing.offsets or (), strict=True
        )
    ]
    to.print(out.table(("buffer", "offset", "end", "lives"), rows, numbers={1, 2}))


def _lifetimes(lifetimes: tuple[tuple[int, int], ...]) -> str:
    return " ".join(f"[{start}, {end})" for start, end in lifetimes)
