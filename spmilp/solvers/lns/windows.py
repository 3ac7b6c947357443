"""Windows one after another, of a size that CP-SAT can handle in the time there is for each."""

import numpy as np
from ortools.sat.python import cp_model

from spmilp.solvers.list_scheduler.records import Ints
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.loosened import opened
from spmilp.solvers.lns.standing import Standing
from spmilp.solvers.lns.window import Window
from spmilp.solvers.lns.window_model import WindowModel

FIRST_SIZE, LEAST_SIZE, MOST_SIZE = 120, 40, 1200
"""Activities of a window."""

GROWTH = 1.3
"""A window that is solved to the end lets the next be larger; one that is not, smaller."""

DETERMINISTIC_TIME = 0.3
"""For one window; about a second at most."""


class Windows:
    """Improves times with open addresses, window by window.

    Windows begin at activities without slack, for all others can save nothing by themselves.
    """

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        self._random = np.random.default_rng(seed)
        self._size = float(FIRST_SIZE)

    def improve(self, loose: Standing, limit: Ints, clock: Clock) -> Standing:
        """Solve one window; return a standing that ends no later."""
        ground, draft, makespan = self._ground, loose.draft, loose.makespan
        late = loosely_right(draft, ground.kept, limit, loose.start, makespan)
        early = loosely_left(draft, ground.kept, limit, late, makespan)
        if makespan_of(draft, early) < makespan:
            return Standing(draft, early, makespan_of(draft, early))
        first, until = self._choose(draft.cycles, early, late)
        window = Window(ground, draft, early, late, first, until)
        found = self._solve(WindowModel(window), clock.seconds_left())
        if found is None:
            return Standing(draft, early, makespan)
        times = window.result(*found)
        better = Standing(draft, times, makespan_of(draft, times))
        return opened(ground, better, limit, clock, rounds=1)

    def _choose(self, cycles: Ints, early: Ints, late: Ints) -> tuple[int, int]:
        """Return the cycles of a window that begins at some activity without slack."""
        order = np.sort(late[cycles > 0])
        tight = late[(cycles > 0) & (late == early)]
        first = int(self._random.choice(tight if tight.size else order))
        position = int(np.searchsorted(order, first))
        size = int(self._size)
        # Not less than a whole window at the end of the plan.
        position = max(0, min(position, order.size - size))
        last = min(order.size - 1, position + size - 1)
        return int(order[position]), int(order[last]) + 1

    def _solve(
        self, model: WindowModel, seconds: float | None
    ) -> tuple[dict[int, int], int] | None:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = int(self._random.integers(2**31))
        solver.parameters.max_deterministic_time = DETERMINISTIC_TIME
        solver.parameters.catch_sigint_signal = False
        if seconds is not None:
            solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(model.cp)
        factor = GROWTH if status == cp_model.OPTIMAL else 1 / GROWTH
        self._size = min(MOST_SIZE, max(LEAST_SIZE, self._size * factor))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        saved = solver.value(model.saved)
        if saved == 0:
            return None
        return {one: solver.value(start) for one, start in model.starts.items()}, saved
