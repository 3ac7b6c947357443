"""Items that all have an offset already: nothing is left to search, the check alone decides."""

import time

from spmilp.packing.check import check_packing
from spmilp.packing.items import PackingProblem
from spmilp.packing.result import Packing, PackingStatistics, PackingStatus


def is_all_fixed(problem: PackingProblem) -> bool:
    """Return whether every item, and there is one, has an offset."""
    return bool(problem.items) and all(item.offset is not None for item in problem.items)


def judge_fixed(problem: PackingProblem) -> Packing:
    """Return the given offsets when they are valid, and else the items of the first violation.

    Raises
    ------
    ValueError
        If an item has no offset.
    """
    began = time.perf_counter()
    offsets = tuple(item.offset for item in problem.items if item.offset is not None)
    violations = check_packing(problem, offsets)
    height = max(o + item.size for o, item in zip(offsets, problem.items, strict=True))
    return Packing(
        status=PackingStatus.INFEASIBLE if violations else PackingStatus.OPTIMAL,
        offsets=None if violations else offsets,
        height=None if violations else height,
        bound=height,
        conflict=violations[0].items if violations else None,
        statistics=PackingStatistics(seconds=time.perf_counter() - began, source="given"),
    )
