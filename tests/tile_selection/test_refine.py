"""Tilings are searched for: what is tried, in which order, and what is kept."""

import pytest

from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower, tile_group
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import BufferKind, Problem
from spmilp.tile_selection.estimate import CostParameters
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.refine import nearby, refine_tilings
from spmilp.tile_selection.tiled_problem import Worth
from tests.lowering.builders import NetworkBuilder, star_machine

Tiles = dict[str, set[tuple[object, object]]]

MACHINE = star_machine(4, 1 << 14)


def network(batch: int = 1) -> Network:
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
    monkeypatch.setattr(CostParameters, "nearby", lambda parameters: iter(()))


def tiles(problem: Problem) -> Tiles:
    """Return the tiles of each group, by its name."""
    found: Tiles = {}
    for task in problem.tasks:
        assert task.tile is not None
        found.setdefault(task.tile.of, set()).add((task.tile.box, task.tile.reduction))
    return found


def test_stretches_are_taken_from_tilings_that_are_worse_as_a_whole(no_others: None) -> None:
    first = first_choice(network(), MACHINE)
    groups, space = network().groups, first.spaces[1]
    start = {one.index: space.profiles(one)[-1].candidate.tiling for one in groups}
    half = len(groups) // 2
    mixed = {one: (start if one < half else first.tilings)[one] for one in start}
    assert mixed not in (start, first.tilings)
    wanted = lower(network(), MACHINE, mixed)

    def evaluate(problem: Problem) -> Worth:
        return (0,) if problem == wanted else (1,)

    assert refine_tilings(first, evaluate, start=start, budget=12) == mixed


@pytest.mark.parametrize("waves", [1, 2])
def test_a_step_from_a_tiling_is_a_tiling(waves: int) -> None:
    some = network(batch=4)
    group = some.groups[1]
    own = Tiling(counts=(2, 2, 4, 1), parts=2, waves=waves)
    found = list(nearby(some, group, own))
    assert {one.parts for one in found} == {1, 2, 4}
    assert {one.waves for one in found} == {waves}
    assert {one.counts[0] for one in found} == ({1, 2, 4} if waves == 1 else {2})
    for one in found:
        assert tile_group(some, group, one).tasks


def test_a_reduction_may_be_split_where_nothing_forces_it(no_others: None) -> None:
    machine = star_machine(4, 1 << 20)
    first = first_choice(network(), machine)
    assert {tiling.parts for tiling in first.tilings.values()} == {1}

    def evaluate(problem: Problem) -> Worth:
        return (-sum(1 for buffer in problem.buffers if buffer.kind is BufferKind.PARTIAL),)

    refined = refine_tilings(first, evaluate, budget=12)
    assert max(tiling.parts for tiling in refined.values()) > 1


def test_the_groups_that_a_plan_waits_for_are_changed_first(no_others: None) -> None:
    first = first_choice(network(), MACHINE)
    for waited_for in [group.name for group in network().groups]:
        seen: list[Tiles] = []

        def evaluate(problem: Problem, seen: list[Tiles] = seen) -> Worth:
            seen.append(tiles(problem))
            return (1,)

        def delays(waited_for: str = waited_for) -> dict[str, int]:
            return {waited_for: 7}

        refine_tilings(first, evaluate, budget=2, delays=delays)
        assert waited_for in {name for name in seen[0] if seen[0][name] != seen[1][name]}
