"""CP-SAT on one part of an instance: the items of each section beside each other.

The only file of the package that imports OR-Tools. Its strength is where the search is weak and the
other way round, so the two take turns.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

from spmilp.packing.conflicts import extent_over
from spmilp.packing.search.arrays import Given, Ints
from spmilp.packing.search.run import Outcome, Part

Expressions: TypeAlias = dict[int, Any]
"""An affine expression of OR-Tools for each item's offset."""


def solve_by_cliques(
    given: Given,
    part: Part,
    latest: Ints,
    *,
    deterministic_time: float,
    seconds: float | None,
    seed: int,
    announce: Callable[[Any], None] | None = None,
) -> tuple[Outcome, Ints | None]:
    """Return the outcome and offsets in units, both as the search does.

    Parameters
    ----------
    latest
        Highest offset of each item of the instance, in units.
    deterministic_time
        OR-Tools' limit that does not depend on the machine's speed; about seconds.
    seconds
        Wall seconds; ``None`` for no limit.
    announce
        Called with the solver before it starts, so that another thread can stop it.
    """
    # Importing OR-Tools takes longer than most packings do.
    from ortools.sat.python import cp_model

    items = part.items.tolist()
    domains = {i: _offsets_in_steps(given, i, int(latest[i])) for i in items}
    if not all(domains.values()):
        return Outcome.EXHAUSTED, None
    model = cp_model.CpModel()
    offset = {
        i: int(given.alignment[i])
        * model.new_int_var_from_domain(cp_model.Domain.from_intervals(domains[i]), f"offset_{i}")
        for i in items
    }
    _sections_are_disjoint(model, given, part, offset)
    _pairs_are_disjoint(model, given, items, offset)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_time
    solver.parameters.catch_sigint_signal = False
    if seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.0, seconds)
    if announce is not None:
        announce(solver)
    status = _status_of(solver, model)
    if status == cp_model.INFEASIBLE:
        return Outcome.EXHAUSTED, None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Outcome.PAUSED, None
    offsets = np.full(given.units.size, -1, dtype=np.int64)
    for i in items:
        offsets[i] = solver.value(offset[i])
    return Outcome.PACKED, offsets


def _status_of(solver: Any, model: Any) -> Any:
    """Solve in a thread of its own, so that an interrupt reaches this one and ends it at once."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        status = beside.submit(solver.solve, model)
        try:
            return status.result()
        except KeyboardInterrupt:
            solver.stop_search()
            raise


def _offsets_in_steps(given: Given, item: int, latest: int) -> list[list[int]]:
    """Return closed intervals of the offsets an item may have, divided by its alignment."""
    step = int(given.alignment[item])
    free: list[list[int]] = []
    first = 0
    for k in range(given.blocked_start[item], given.blocked_start[item + 1]):
        last = (min(int(given.blocked_from[k]), latest + 1) - 1) // step
        if first <= last:
            free.append([first, last])
        first = max(first, -(-int(given.blocked_until[k]) // step))
    if first <= latest // step:
        free.append([first, latest // step])
    return free


def _sections_are_disjoint(model: Any, given: Given, part: Part, offset: Expressions) -> None:
    """Add one ``no_overlap`` for the items, and the obstacles, of each section."""
    run_of_stay = np.searchsorted(given.stay_start, given.member_stay, side="right") - 1
    runs: dict[int, Any] = {}
    for section in range(part.section_from, part.section_until):
        intervals = []
        for k in range(given.member_start[section], given.member_start[section + 1]):
            item, run = int(given.member[k]), int(run_of_stay[k])
            if run not in runs:
                runs[run] = model.new_fixed_size_interval_var(
                    offset[item], int(given.run_units[run]), f"run_{run}"
                )
            intervals.append(runs[run])
        for k in range(given.obstacle_start[section], given.obstacle_start[section + 1]):
            start, end = int(given.obstacle_from[k]), int(given.obstacle_until[k])
            intervals.append(model.new_fixed_size_interval_var(start, end - start, f"obstacle_{k}"))
        if len(intervals) > 1:
            model.add_no_overlap(intervals)


def _pairs_are_disjoint(model: Any, given: Given, items: list[int], offset: Expressions) -> None:
    """Add what pairs that must lie apart need beyond the sections they share."""
    if given.pair_extent.size == 0:
        return
    runs = (given.run_start, given.run_from, given.run_until, given.run_units)
    extent = {
        (i, int(given.pair_item[k])): int(given.pair_extent[k])
        for i in items
        for k in range(given.pair_start[i], given.pair_start[i + 1])
    }
    for (i, j), above_i in extent.items():
        if i < j and (
            above_i > extent_over(i, j, *runs) or extent[j, i] > extent_over(j, i, *runs)
        ):
            model.add_no_overlap(
                [
                    model.new_fixed_size_interval_var(offset[i], above_i, f"apart_{i}_{j}"),
                    model.new_fixed_size_interval_var(offset[j], extent[j, i], f"apart_{j}_{i}"),
                ]
            )
