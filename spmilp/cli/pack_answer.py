"""The answer of ``spmilp pack``: tables for people, one object for programs, reasons in words."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from rich.console import Console
from rich.markup import escape

from spmilp import amounts
from spmilp.cli import output as out
from spmilp.packing import Item, Packing, PackingProblem, PackingStatus, PackingViolation
from spmilp.packing.minimalloc import Table
from spmilp.units import Bytes, Cycles

MOST_BUFFERS = 30
"""Buffers that get a row of their own when no file takes them."""
MOST_NAMES = 12
"""Buffers that a message names."""
LONGEST_NAME = 40


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
        count = amounts.count(len(answer.violations), "violation")
        head = (
            f"the checker rejects the offsets ({count}; items are counted from 0). This is a "
            "defect of spmilp, please report it with the file; nothing was written"
        )
        return "\n".join([head, *lines])
    if answer.packing.status is PackingStatus.INFEASIBLE:
        return f"infeasible: {why_infeasible(answer.table, answer.problem, answer.packing)}"
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
        "status": str(packing.status),
        "checked": checked,
        "height": height,
        "bound": packing.bound,
        "gap": None if height is None else amounts.relative_gap(height, packing.bound),
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
    buffers = amounts.count(len(answer.table.ids), "buffer")
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
    packing, capacity = answer.packing, answer.problem.capacity
    height = packing.height or 0
    live = busiest(answer.problem.items)
    fixed = sum(1 for item in answer.problem.items if item.offset is not None)
    share = f"{height / capacity:.1%} of the capacity {capacity:,} B" if capacity else ""
    gap = amounts.relative_gap(height, packing.bound)
    spent = packing.statistics
    source = (spent.source or "nothing").replace("_", " ")
    return [
        ("height", f"{height:,} B", share),
        ("lower bound", f"{packing.bound:,} B", "no packing is lower"),
        ("gap", amounts.percent(gap), "optimal" if gap == 0 else ""),
        ("live bytes", f"{live.size:,} B", f"at most, from {live.start} to {live.end}"),
        *([("fixed", f"{fixed:,}", "by the column offset")] if fixed else []),
        ("search", f"{spent.nodes:,} nodes", f"{amounts.time(spent.seconds)}, found by {source}"),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The first time span with the most live bytes, ``[start, end)``."""

    start: Cycles
    end: Cycles
    size: Bytes


def busiest(items: Iterable[Item]) -> Peak:
    """Return when most bytes are alive, and how many; all 0 without items."""
    steps: Counter[Cycles] = Counter()
    for item in items:
        for start, end in item.lifetimes:
            steps[start] += item.size
            steps[end] -= item.size
    times = sorted(steps)
    peak, live = Peak(start=0, end=0, size=0), 0
    for start, end in pairwise(times):
        live += steps[start]
        if live > peak.size:
            peak = Peak(start=start, end=end, size=live)
    return peak


def why_infeasible(table: Table, problem: PackingProblem, packing: Packing) -> str:
    """Name the buffers that cannot be packed together, and say what they need and what there is."""
    capacity, conflict = problem.capacity, packing.conflict or ()
    names = _names([table.ids[i] for i in conflict])
    items = [problem.items[i] for i in conflict]
    clash = _clash([table.ids[i] for i in conflict], items, capacity)
    if clash:
        return clash
    least = f"no packing of all is lower than {packing.bound:,} B"
    if capacity is None or not conflict:
        return least
    peak = busiest(items)
    if peak.size > capacity:
        take = "takes" if len(items) == 1 else "together take"
        span = f"in [{peak.start}, {peak.end})"
        more = f"{peak.size - capacity:,} B more than the capacity of {capacity:,} B"
        return f"{names} {take} {peak.size:,} B {span}, {more}; {least}"
    fixed = sum(1 for item in items if item.offset is not None)
    where = f", {fixed} of them fixed by the column offset," if fixed else ""
    return (
        f"{names}{where} have no offsets together inside {capacity:,} B, though at most "
        f"{peak.size:,} B of them live at once (every arrangement is ruled out); {least}"
    )


def _clash(names: Sequence[str], items: Sequence[Item], capacity: Bytes | None) -> str:
    """Say how fixed offsets alone contradict the capacity or each other; empty if they do not."""
    fixed = [
        (_short(name), item, item.offset, item.offset + item.size)
        for name, item in zip(names, items, strict=True)
        if item.offset is not None
    ]
    for name, _, start, end in fixed:
        if capacity is not None and end > capacity:
            return (
                f"{name} is fixed at [{start:,}, {end:,}) by the column offset, beyond the "
                f"capacity of {capacity:,} B; --ignore-offsets places it anew"
            )
    for (a_name, a, a_start, a_end), (b_name, b, b_start, b_end) in combinations(fixed, 2):
        shared = min(a_end, b_end) - max(a_start, b_start)
        if shared > 0 and _live_together(a, b):
            return (
                f"{a_name} at [{a_start:,}, {a_end:,}) and {b_name} at [{b_start:,}, {b_end:,}) "
                f"are fixed by the column offset, live at the same time and share {shared:,} B; "
                "--ignore-offsets places them anew"
            )
    return ""


def _live_together(a: Item, b: Item) -> bool:
    return any(
        start < b_end and b_start < end
        for start, end in a.lifetimes
        for b_start, b_end in b.lifetimes
    )


def _names(names: Sequence[str]) -> str:
    shown = [_short(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - MOST_NAMES} more buffers"
    if len(shown) == 1:
        return f"buffer {shown[0]}"
    return f"the {len(shown)} buffers {', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
