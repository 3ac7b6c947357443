"""CP-SAT on one part of an instance: the items of each section do not overlap.

The only file of the package that imports OR-Tools. Its strength is where the search is weak and the
other way round, so the two alternate, or CP-SAT works in the background.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from spmilp.interruptible import Background, interruptibly
from spmilp.packing.result import Clock
from spmilp.packing.search.arrays import Ints, Tables
from spmilp.packing.search.run import Outcome, Question

Expressions: TypeAlias = dict[int, Any]
"""An affine expression of OR-Tools for each item's offset."""
NO_LIMIT = 1e9
"""OR-Tools' deterministic time of a call that ends when it is stopped."""


def solve_by_cliques(
    question: Question,
    *,
    deterministic_time: float,
    seconds: float | None,
    seed: int,
    announce: Callable[[Any], None] | None = None,
) -> tuple[Outcome, Ints | None]:
    """Return the outcome and offsets in units, both as the search does.

    Parameters
    ----------
    deterministic_time
        OR-Tools' limit that does not depend on the machine's speed; about seconds.
    seconds
        Wall seconds; ``None`` for no limit.
    announce
        Called with the solver before it starts, so that another thread can stop it.
    """
    # Importing OR-Tools takes longer than most packings do.
    from ortools.sat.python import cp_model

    tables, items = question.tables, question.part.items.tolist()
    domains = {i: _offsets_in_steps(tables, i, int(question.latest[i])) for i in items}
    if not all(domains.values()):
        return Outcome.EXHAUSTED, None
    model = cp_model.CpModel()
    offset = {
        i: int(tables.alignment[i])
        * model.new_int_var_from_domain(cp_model.Domain.from_intervals(domains[i]), f"offset_{i}")
        for i in items
    }
    _sections_are_disjoint(model, question, offset)
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
    offsets = np.full(tables.units.size, -1, dtype=np.int64)
    for i in items:
        offsets[i] = solver.value(offset[i])
    return Outcome.PACKED, offsets


def _status_of(solver: Any, model: Any) -> Any:
    """Solve; an interrupt stops the solver and passes on at once."""
    try:
        return interruptibly(solver.solve, model)
    except KeyboardInterrupt:
        solver.stop_search()
        raise


def _offsets_in_steps(tables: Tables, item: int, latest: int) -> list[list[int]]:
    """Return closed intervals of the offsets an item may have, divided by its alignment."""
    step = int(tables.alignment[item])
    free: list[list[int]] = []
    first = 0
    for k in range(tables.blocked_start[item], tables.blocked_start[item + 1]):
        last = (min(int(tables.blocked_from[k]), latest + 1) - 1) // step
        if first <= last:
            free.append([first, last])
        first = max(first, -(-int(tables.blocked_until[k]) // step))
    if first <= latest // step:
        free.append([first, latest // step])
    return free


def _sections_are_disjoint(model: Any, question: Question, offset: Expressions) -> None:
    """Add one ``no_overlap`` for the items, and the obstacles, of each section."""
    tables, part = question.tables, question.part
    run_of_incidence = (
        np.searchsorted(tables.incidence_start, tables.member_incidence, side="right") - 1
    )
    runs: dict[int, Any] = {}
    for section in range(part.section_from, part.section_until):
        intervals = []
        for k in range(tables.member_start[section], tables.member_start[section + 1]):
            item, run = int(tables.member[k]), int(run_of_incidence[k])
            if run not in runs:
                runs[run] = model.new_fixed_size_interval_var(
                    offset[item], int(tables.run_units[run]), f"run_{run}"
                )
            intervals.append(runs[run])
        for k in range(tables.obstacle_start[section], tables.obstacle_start[section + 1]):
            start, end = int(tables.obstacle_from[k]), int(tables.obstacle_until[k])
            intervals.append(model.new_fixed_size_interval_var(start, end - start, f"obstacle_{k}"))
        if len(intervals) > 1:
            model.add_no_overlap(intervals)


class BackgroundCliques:
    """One call of CP-SAT under way; it and the compiled search run without the interpreter lock."""

    def __init__(self, question: Question, clock: Clock, seed: int) -> None:
        self._solver: list[Any] = []
        self._call = Background(
            lambda: solve_by_cliques(
                question,
                deterministic_time=NO_LIMIT,
                seconds=clock.seconds_left,
                seed=seed,
                announce=self._solver.append,
            )
        )

    def answer(self) -> tuple[Outcome, Ints | None]:
        """Return what is known by now."""
        return self._call.answer() if self._call.ended.is_set() else (Outcome.PAUSED, None)

    def stop(self) -> None:
        """Ask the solver to stop and wait for it."""
        for solver in self._solver:
            solver.stop_search()
        self._call.ended.wait()
