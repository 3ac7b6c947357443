"""Why buffers cannot be packed, in words with both numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from spmilp import quantities
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
    clash = _clash(table, problem, conflict)
    if clash:
        return clash
    least = f"no packing of all is lower than {packing.bound:,} B"
    if capacity is None or not conflict:
        return least
    apart = _pairs_within(problem.apart, conflict)
    peak, total = busiest(items), sum(item.size for item in items)
    if not _pairs_within(problem.together, conflict):
        if peak.size > capacity:
            take = "takes" if len(items) == 1 else "together take"
            span = f"in [{peak.start}, {peak.end})"
            return f"{names} {take} {peak.size:,} B {span}, {_more(peak.size, capacity)}; {least}"
        each_two = all(
            pair in apart or _live_together(*(problem.items[i] for i in pair))
            for pair in combinations(sorted(conflict), 2)
        )
        if apart and each_two and total > capacity:
            return (
                f"{names}, of which each two live at the same time or must lie apart, take "
                f"{total:,} B, {_more(total, capacity)}; {least}"
            )
    fixed = sum(1 for item in items if item.offset is not None)
    bounds = [
        *([f"{fixed} of them fixed by the column offset"] if fixed else []),
        *([f"{quantities.count(len(apart), 'pair')} of them kept apart"] if apart else []),
        *([f"outside {ranges_text(problem.reserved)}"] if problem.reserved else []),
    ]
    where = f", {', '.join(bounds)}," if bounds else ""
    return (
        f"{names}{where} have no offsets together inside {capacity:,} B, though at most "
        f"{peak.size:,} B of them live at once (every arrangement is ruled out); {least}"
    )


def _more(bytes_: Bytes, capacity: Bytes) -> str:
    return f"{bytes_ - capacity:,} B more than the capacity of {capacity:,} B"


def _pairs_within(pairs: tuple[tuple[int, int], ...], items: Sequence[int]) -> set[tuple[int, int]]:
    """Return the pairs of which both are among some items, the lower item first."""
    some = set(items)
    return {(min(pair), max(pair)) for pair in pairs if some.issuperset(pair)}


def ranges_text(reserved: tuple[tuple[Bytes, Bytes], ...]) -> str:
    """Return ranges of bytes as people write them."""
    return ", ".join(f"[{start:,}, {end:,})" for start, end in reserved)


def _clash(table: Table, problem: PackingProblem, conflict: Sequence[int]) -> str:
    """Say how fixed offsets alone contradict what else is given; empty if they do not."""
    capacity = problem.capacity
    fixed = [
        (i, _short(table.ids[i]), item.offset, item.offset + item.size)
        for i in conflict
        if (item := problem.items[i]).offset is not None
    ]
    for _, name, start, end in fixed:
        if capacity is not None and end > capacity:
            return (
                f"{name} is fixed at [{start:,}, {end:,}) by the column offset, beyond the "
                f"capacity of {capacity:,} B; --ignore-offsets places it anew"
            )
        for first, last in problem.reserved:
            if start < last and first < end:
                return (
                    f"{name} is fixed at [{start:,}, {end:,}) by the column offset, in the range "
                    f"[{first:,}, {last:,}) that is reserved; --ignore-offsets places it anew"
                )
    apart = _pairs_within(problem.apart, conflict)
    for (a, a_name, a_start, a_end), (b, b_name, b_start, b_end) in combinations(fixed, 2):
        shared = min(a_end, b_end) - max(a_start, b_start)
        kept_apart = (min(a, b), max(a, b)) in apart
        live = _live_together(problem.items[a], problem.items[b])
        # Those that must lie together have one offset, and may share bytes.
        live = live and not (problem.together and a_start == b_start)
        if shared > 0 and (live or kept_apart):
            why = "live at the same time" if live else "must lie apart"
            return (
                f"{a_name} at [{a_start:,}, {a_end:,}) and {b_name} at [{b_start:,}, {b_end:,}) "
                f"are fixed by the column offset, {why} and share {shared:,} B; "
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
