"""Trials are shared among neighbourhoods."""

from collections.abc import Iterator
from dataclasses import replace

from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling, Tilings, tile_grid
from spmilp.problem.problem import Problem
from spmilp.tile_selection.refine import Evaluate, NeighbourhoodSearch, Pass, Trials
from spmilp.tile_selection.tiled_problem import Worth
from tests.lowering.builders import NetworkBuilder, star_machine

MACHINE = star_machine(2, 1 << 20)


def rectifiers(count: int) -> Network:
    """Return operators that can be cut into 1 to 8 tiles each."""
    builder = NetworkBuilder()
    data = builder.input((1, 8))
    for _ in range(count):
        data = builder.relu(data)
    return builder.network(data)


def trials_of(network: Network, evaluate: Evaluate, budget: int) -> Trials:
    trials = Trials(lambda some: lower(network, MACHINE, some), evaluate, budget)
    trials.is_better({group.index: Tiling(counts=(1, 1)) for group in network.groups})
    return trials


def cuts(trials: Trials, group: int, tried: list[int]) -> Pass:
    """Return the pass that cuts one group into 2, 3, ... tiles, and notes its number each time."""

    def whole_pass() -> Iterator[Tilings]:
        for count in range(2, 9):
            tried.append(group)
            cut = replace(trials.best[group], counts=(1, count))
            yield {**trials.best, group: cut}

    return whole_pass


def test_what_pays_has_more_trials() -> None:
    network = rectifiers(2)
    names = [group.name for group in network.groups]

    def evaluate(problem: Problem) -> Worth:
        return (-sum(task.tile is not None and task.tile.of == names[1] for task in problem.tasks),)

    trials = trials_of(network, evaluate, 9)
    tried: list[int] = []
    NeighbourhoodSearch(trials, [(0.2, cuts(trials, one, tried)) for one in (0, 1)]).run()
    assert tried.count(1) > tried.count(0) > 0


def test_of_equal_makespans_the_one_with_less_traffic_is_better() -> None:
    network = rectifiers(1)
    traffic = {1: 9, 2: 8, 4: 8}
    trials = trials_of(network, lambda problem: (7, traffic[len(problem.tasks)]), 9)

    assert trials.is_better({0: Tiling(counts=(1, 2))})
    assert not trials.is_better({0: Tiling(counts=(1, 4))})
    assert trials.least == (7, 8)


def test_tilings_that_cut_alike_are_one_trial() -> None:
    network = rectifiers(1)
    lowered: list[Tilings] = []

    def lower_noted(tilings: Tilings) -> Problem:
        lowered.append(tilings)
        return lower(network, MACHINE, tilings)

    trials = Trials(
        lower_noted,
        lambda problem: (len(problem.tasks),),
        cuts=lambda group, tiling: tile_grid(tiling, (1, 8), 1),
    )
    plain, rounded = Tiling(counts=(1, 4)), Tiling(counts=(1, 8), multiples=(1, 2))
    assert trials.is_better({0: plain})
    assert not trials.are_new({0: rounded})
    assert trials.value_of({0: rounded}) == (4,)
    assert not trials.is_better({0: rounded})
    assert trials.are_new({0: Tiling(counts=(1, 8), multiples=(1, 4))})
    assert lowered == [{0: plain}]
