"""Better tilings by trying others with a solver as the judge."""

from collections.abc import Callable, Hashable, Mapping
from math import inf

from spmilp.frontend.graph import Network
from spmilp.lowering.choose import FirstChoice, first_choice
from spmilp.lowering.cost import NO_MEASUREMENTS
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.fit import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from spmilp.lowering.waves import in_waves
from spmilp.machine.machine import Machine
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import Problem

Evaluate = Callable[[Problem], int | None]


def refine_tilings(
    network: Network,
    machine: Machine,
    tilings: Mapping[int, Tiling],
    evaluate: Evaluate,
    budget: int | None = None,
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    sources: tuple[tuple[str, str], ...] = (),
    is_over: Callable[[], bool] = lambda: False,
    measured: CycleTable = NO_MEASUREMENTS,
    first: FirstChoice | None = None,
) -> dict[int, Tiling]:
    """Improve tilings by coordinate descent: one class of like groups at a time.

    The given tilings are evaluated first. Then come the classes that are expected to take longest;
    each of a class's candidates, the most promising first, is tried for all of its groups at once
    and kept if the value falls. When a pass over the classes changes nothing, passes over single
    groups follow, until one of them changes nothing. A ``KeyboardInterrupt`` ends the search like
    ``is_over``, but passes on as long as no value is known.

    Parameters
    ----------
    tilings
        Where to start, for example what
        :func:`~spmilp.lowering.choose.choose_tilings` has found.
    evaluate
        The value of a problem, for example a plan's makespan; less is better. ``None`` for a
        problem without a plan.
    budget
        Problems to evaluate at most, the starting one included; ``None`` without limit.
    objective, sources
        Of the problems that are evaluated.
    is_over
        Asked before each evaluation whether to stop.
    first
        The first choice for this network, machine and objective, if it is known; what it holds need
        not be found once more.

    Returns
    -------
    dict[int, Tiling]
        Tilings whose value is at most that of the given ones.
    """

    def lowered(some: Mapping[int, Tiling]) -> Problem:
        if first is not None and first.problem is not None and some == first.tilings:
            return first.problem
        return lower(
            network, machine, some, measured=measured, objective=objective, sources=sources
        )

    search = _Search(network, lowered, evaluate, budget, is_over)
    return search.run(
        dict(tilings), lambda: first or first_choice(network, machine, measured=measured)
    )


class _Search:
    def __init__(
        self,
        network: Network,
        lowered: Callable[[Mapping[int, Tiling]], Problem],
        evaluate: Evaluate,
        budget: int | None,
        is_over: Callable[[], bool],
    ) -> None:
        self._network = network
        self._lowered = lowered
        self._evaluate = evaluate
        self._left = inf if budget is None else budget
        self._is_over = is_over
        self._tried: set[tuple[Tiling, ...]] = set()
        self._best: dict[int, Tiling] = {}
        self._least: int | None = None

    def run(self, best: dict[int, Tiling], first: Callable[[], FirstChoice]) -> dict[int, Tiling]:
        """Return the best tilings found."""
        self._best = best
        try:
            self._least = self._value(best)
            if not self._is_over():
                self._descend(first())
        except KeyboardInterrupt:
            if self._least is None:
                raise
        return self._best

    def _descend(self, first: FirstChoice) -> None:
        self._landscapes = first.landscapes
        classes = self._classes(first.times)
        groups = [[member] for members in classes if len(members) > 1 for member in members]
        for neighbourhood in (classes, groups):
            while self._improves(neighbourhood):
                pass

    def _improves(self, neighbourhood: list[list[int]]) -> bool:
        """Try every candidate for each set of groups once; say whether one was better."""
        improved = False
        for members in neighbourhood:
            for tiling in self._alternatives(members[0]):
                trial = {**self._best, **dict.fromkeys(members, tiling)}
                found = self._value(trial)
                if found is not None and (self._least is None or found < self._least):
                    self._best, self._least, improved = trial, found, True
        return improved

    def _value(self, tilings: Mapping[int, Tiling]) -> int | None:
        """Evaluate tilings; ``None`` if they were tried, do not fit, or nothing is left."""
        key = tuple(tilings[group.index] for group in self._network.groups)
        if key in self._tried or self._left <= 0 or self._is_over():
            return None
        self._tried.add(key)
        problem = self._lowered(tilings)
        if groups_that_do_not_fit(problem):
            return None
        self._left -= 1
        return self._evaluate(problem)

    def _classes(self, times: Mapping[int, list[float]]) -> list[list[int]]:
        """Return the groups that are alike, those expected to take longest first."""
        long: dict[Hashable, float] = {}
        members: dict[Hashable, list[int]] = {}
        for group in self._network.groups:
            waves, kind = self._waves(group.index), self._kind(group.index)
            members.setdefault(kind, []).append(group.index)
            long[kind] = long.get(kind, 0.0) + waves * times[waves][group.index]
        return sorted(members.values(), key=lambda some: -long[self._kind(some[0])])

    def _alternatives(self, group: int) -> list[Tiling]:
        waves = self._waves(group)
        profiles = self._landscapes[waves].profiles(self._network.groups[group])
        return [in_waves(profile.candidate.tiling, waves) for profile in profiles]

    def _kind(self, group: int) -> Hashable:
        waves = self._waves(group)
        return waves, self._landscapes[waves].class_of(self._network.groups[group])

    def _waves(self, group: int) -> int:
        waves = self._best[group].waves
        return waves if waves in self._landscapes else 1
