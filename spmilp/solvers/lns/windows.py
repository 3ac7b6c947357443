"""Windows one after another, of a size that CP-SAT can handle in the time there is for each."""

from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.lns.choice import Choice
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.kinds import CUTS, Field, Kind
from spmilp.solvers.lns.known import Answer, Known
from spmilp.solvers.lns.lifetimes import makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.loosened import opened
from spmilp.solvers.lns.standing import Standing
from spmilp.solvers.lns.window import Window
from spmilp.solvers.lns.window_memory import memories_suffice
from spmilp.solvers.lns.window_model import WindowModel

FIRST_SIZE, LEAST_SIZE, MOST_SIZE = 120, 40, 1200
"""Free activities of a window."""

GROWTH = 1.3
"""A window that is solved to the end lets the next be larger; one that is not, smaller."""

DETERMINISTIC_TIME = 0.1
"""For one window; about a second at most."""


class Windows:
    """Improves times with open addresses, window by window.

    Parameters
    ----------
    kinds
        Of windows; those that save most for their time are taken most often.
    """

    def __init__(
        self, ground: Ground, kinds: Sequence[Kind], seed: int, *, has_clock: bool
    ) -> None:
        self._ground = ground
        self._random = np.random.default_rng(seed)
        self._choice = Choice(self._random, kinds, has_clock=has_clock)
        self._sizes = dict.fromkeys(kinds, float(FIRST_SIZE))
        self._known = Known()

    def improve(self, loose: Standing, limit: Ints, clock: Clock) -> Standing:
        """Solve one window; return a standing that ends no later."""
        began, kind = clock.now(), self._choice.next()
        found = self._improved(kind, loose, limit, clock)
        self._choice.learn(kind, loose.makespan - found.makespan, clock.now() - began)
        return found

    def _improved(self, kind: Kind, loose: Standing, limit: Ints, clock: Clock) -> Standing:
        ground, draft, makespan = self._ground, loose.draft, loose.makespan
        late = loosely_right(draft, ground.kept, limit, loose.start, makespan)
        early = loosely_left(draft, ground.kept, limit, late, makespan)
        if makespan_of(draft, early) < makespan:
            return Standing(draft, early, makespan_of(draft, early))
        field = Field(ground, draft, early, late)
        cut = CUTS[kind](field, int(self._sizes[kind]), self._random)
        window = Window(ground, draft, early, late, cut)
        answer = self._answer_to(window, kind, clock.seconds_left())
        if answer.saved == 0:
            return Standing(draft, early, makespan)
        times = window.result(answer)
        better = Standing(draft, times, makespan_of(draft, times))
        return opened(ground, better, limit, clock, rounds=1)

    def _answer_to(self, window: Window, kind: Kind, seconds: float | None) -> Answer:
        model = WindowModel(window)
        memories_suffice(model)
        fingerprint = model.fingerprint()
        answer, is_proven = self._known.answer(fingerprint), True
        if answer is None:
            answer, is_proven = self._solved(model, seconds)
        factor = GROWTH if is_proven else 1 / GROWTH
        self._sizes[kind] = min(MOST_SIZE, max(LEAST_SIZE, self._sizes[kind] * factor))
        if is_proven:
            # Another seed may find more for the others.
            self._known.remember(fingerprint, answer)
        return answer

    def _solved(self, model: WindowModel, seconds: float | None) -> tuple[Answer, bool]:
        """Return what CP-SAT finds, and whether it has proven that there is nothing better."""
        model.begin_with_old_times()
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = int(self._random.integers(2**31))
        solver.parameters.max_deterministic_time = DETERMINISTIC_TIME
        # Relaxations cost more than what they prune: times follow from orders.
        solver.parameters.linearization_level = 0
        solver.parameters.catch_sigint_signal = False
        if seconds is not None:
            solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(model.cp)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Answer(0, ()), False
        return model.answer(solver), status == cp_model.OPTIMAL
