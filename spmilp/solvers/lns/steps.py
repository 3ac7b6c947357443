"""Steps of all kinds from one standing with open addresses to the next."""

import numpy as np

from spmilp.solvers.lns.choice import Choice, Step
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.cores.relocations import Relocations
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.kicks import kicked, pushed
from spmilp.solvers.lns.loosened import Filling
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.standing import Standing
from spmilp.solvers.lns.windows import Windows


class Steps:
    """Takes the steps that have paid most so far.

    Parameters
    ----------
    filling
        How full memories may become; it may change between steps.
    """

    def __init__(
        self, ground: Ground, filling: Filling, clock: Clock, settings: LnsOptions, seed: int
    ) -> None:
        self._ground = ground
        self._filling = filling
        self._clock = clock
        self._random = np.random.default_rng(seed)
        self._windows = Windows(ground, settings.windows, seed, has_clock=clock.is_limited)
        self._relocations = Relocations(ground, seed)
        self._choice = Choice(
            self._random, settings.steps, has_clock=clock.is_limited, rare=Step.WINDOW
        )

    def take(self, loose: Standing) -> Standing:
        """Return a standing that ends no later, with open addresses."""
        began, kind = self._clock.now(), self._choice.next()
        found = self._result_of(kind, loose)
        self._choice.learn(kind, loose.makespan - found.makespan, self._clock.now() - began)
        return found

    def _result_of(self, kind: Step, loose: Standing) -> Standing:
        limit = self._filling.limit()
        if kind is Step.WINDOW:
            return self._windows.improve(loose, limit, self._clock)
        if kind is Step.RELOCATION:
            return self._relocations.improve(loose, limit, self._clock)
        kick = kicked if kind is Step.KICK else pushed
        return kick(self._ground, loose, limit, self._clock, self._random)
