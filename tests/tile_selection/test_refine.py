"""Tilings are searched for: what is tried, in which order, and what is kept."""

import pytest

from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower, tile_group
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import BufferKind, Problem
from spmilp.tile_selection.coarse import nearby
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.refine import Evaluate, Trials, refine_tilings
from spmilp.tile_selection.tiled_problem import Worth
from tests.lowering.builders import NetworkBuilder, star_machine

Tiles = dict[str, set[tuple[object, object]]]

MACHINE = star_machine(4, 1 << 14)


def residuals(batch: int = 1) -> Network:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((batch, 3, 16, 16)), 16)
    for _ in range(2):
        data = builder.conv(data, 16, residual=data)
    return builder.network(builder.conv(builder.pool(data), 32, kernel=1))


@pytest.fixture
def no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search have no other estimates, and no tilings of quickest plans."""
    monkeypatch.setattr("spmilp.tile_selection.refine.CoarseTilings", lambda *_: ())
    monkeypatch.setattr("spmilp.tile_selection.refine.ALTERNATIVES", ())


def tiles(problem: Problem) -> Tiles:
    """Return the tiles of each group, by its name."""
    found: Tiles = {}
    for task in problem.tasks:
        assert task.tile is not None
        found.setdefault(task.tile.of, set()).add((task.tile.box, task.tile.reduction))
    return found


@pytest.mark.full
def test_refining_never_makes_it_worse_and_keeps_to_its_budget() -> None:
    first = first_choice(residuals(), MACHINE)
    values: list[int] = []

    def evaluate(problem: Problem) -> Worth:
        values.append(len(problem.tasks))
        return (values[-1],)

    refined = refine_tilings(first, Trials(first.lower, evaluate, 20))
    assert len(values) <= 20
    assert len(lower(residuals(), MACHINE, refined).tasks) == min(values)


def test_a_step_from_a_tiling_is_a_tiling() -> None:
    some = residuals(batch=4)
    group = some.groups[1]
    own = Tiling(counts=(2, 2, 4, 1), parts=2)
    found = list(nearby(GroupModel(some, group, MACHINE), own))
    assert {one.parts for one in found} == {1, 2, 4}
    assert {one.counts[0] for one in found} == {1, 2, 4}
    for one in found:
        assert tile_group(some, group, one).tasks


def test_a_reduction_may_be_split_where_nothing_forces_it(no_others: None) -> None:
    first = first_choice(residuals(), star_machine(4, 1 << 20))
    assert {tiling.parts for tiling in first.tilings.values()} == {1}

    def evaluate(problem: Problem) -> Worth:
        return (-sum(1 for buffer in problem.buffers if buffer.kind is BufferKind.PARTIAL),)

    refined = refine_tilings(first, Trials(first.lower, evaluate, 12))
    assert max(tiling.parts for tiling in refined.values()) > 1


def test_the_groups_that_a_plan_waits_for_are_changed_first(no_others: None) -> None:
    first = first_choice(residuals(), MACHINE)
    for waited_for in [group.name for group in residuals().groups]:
        seen: list[Tiles] = []

        def evaluate(problem: Problem, seen: list[Tiles] = seen) -> Worth:
            seen.append(tiles(problem))
            return (1,)

        def delays(waited_for: str = waited_for) -> dict[str, int]:
            return {waited_for: 7}

        refine_tilings(first, Trials(first.lower, evaluate, 2), delays=delays)
        assert waited_for in {name for name in seen[0] if seen[0][name] != seen[1][name]}


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


def test_of_equal_makespans_the_one_with_less_traffic_is_better() -> None:
    traffic = {1: 9, 2: 8, 4: 8}
    trials = trials_of(rectifiers(1), lambda problem: (7, traffic[len(problem.tasks)]), 9)

    assert trials.is_better({0: Tiling(counts=(1, 2))})
    assert not trials.is_better({0: Tiling(counts=(1, 4))})
    assert trials.least == (7, 8)
