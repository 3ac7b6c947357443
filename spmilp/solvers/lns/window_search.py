"""Windows one after another, of a size that CP-SAT can handle in the time there is for each."""

import numpy as np
from ortools.sat.python import cp_model

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.lns.window import Window, WindowSolution, window_somewhere
from spmilp.solvers.lns.window_model import WindowModel, solver_of_one_window
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import justified_by_capacity
from spmilp.solvers.partial_order.schedule import Memories, TimedSchedule

FIRST_SIZE, LEAST_SIZE, MOST_SIZE = 120, 40, 1200
"""Activities of a window."""

GROWTH = 1.3
"""A window that is solved to the end lets the next be larger; one that is not, smaller."""

DETERMINISTIC_TIME = 0.1
"""For one window; about a second at most."""


class WindowSearch:
    """Improves times with open addresses, window by window."""

    def __init__(self, context: ScheduleContext, seed: int) -> None:
        self._context = context
        self._random = np.random.default_rng(seed)
        self._size = float(FIRST_SIZE)

    def improve(self, current: TimedSchedule, memories: Memories, clock: Clock) -> TimedSchedule:
        """Solve one window; return a schedule that ends no later."""
        late = backward_pass(current, memories)
        early = forward_pass(late, memories)
        if early.makespan < current.makespan:
            return early
        window = window_somewhere(self._context, early, late, int(self._size), self._random)
        found = self._solved(window, clock.seconds_left())
        if found.saved == 0:
            return early
        better = window.result(found)
        return justified_by_capacity(self._context, better, memories, clock, rounds=1)

    def _solved(self, window: Window, seconds: float | None) -> WindowSolution:
        """Return what CP-SAT finds; a proof lets the next window be larger."""
        model = WindowModel(window)
        model.add_hint()
        seed = int(self._random.integers(2**31))
        solver = solver_of_one_window(seed, DETERMINISTIC_TIME, seconds)
        status = solver.solve(model.cp)
        factor = GROWTH if status == cp_model.OPTIMAL else 1 / GROWTH
        self._size = min(MOST_SIZE, max(LEAST_SIZE, self._size * factor))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return WindowSolution(0, ())
        return model.solution(solver)
