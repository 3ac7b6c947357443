"""Why buffers have no offsets, in words and with the numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from spmilp.packing import Item, Packing, PackingProblem
from spmilp.packing.minimalloc import Table
from spmilp.units import Bytes, Cycles

MOST_NAMES = 12
"""Buffers that a message names."""
LONGEST_NAME = 40


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
