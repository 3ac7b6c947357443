"""Blocks of named DMA controllers are within their limits, and what none can express is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.worked_example import CORE_DMA, PLAN, broken, with_engine
from spmilp.machine.controllers import CONTROLLERS, StridedCopy, blocks_of, defects_of


@st.composite
def copies(draw: st.DrawFn, granule: int) -> StridedCopy:
    """Draw a copy of up to three loops, rows apart by gaps that are sometimes none or large."""
    run = granule * draw(st.integers(1, 300))
    source = target = run
    loops: list[tuple[int, int, int]] = []
    for _ in range(draw(st.integers(0, 3))):
        gap = st.sampled_from([0, granule, 4, 60, 1000]).map(lambda n: n - n % granule)
        count = draw(st.integers(2, 5))
        strides = (source + draw(gap), target + draw(gap))
        loops.insert(0, (count, *strides))
        source, target = count * strides[0], count * strides[1]
    return StridedCopy(
        source=granule * draw(st.integers(0, 40)),
        destination=granule * draw(st.integers(0, 40)),
        run=run,
        loops=tuple(loops),
    )


@pytest.mark.parametrize("name", sorted(CONTROLLERS))
@settings(derandomize=True, max_examples=30, deadline=None)
@given(block=copies(granule=4))
def test_blocks_are_within_the_limits_and_move_every_byte(name: str, block: StridedCopy) -> None:
    controller = CONTROLLERS[name]
    blocks = blocks_of(block, controller)
    assert sum(each.bytes for each in blocks) == block.bytes
    for each in blocks:
        assert each.bytes <= controller.total
        assert len(each.loops) <= len(controller.turns)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (StridedCopy(source=2, destination=0, run=8), "its source address 2 B is 2 modulo 4 B"),
        (StridedCopy(run=15), "its run 15 B is 3 modulo 4 B"),
        (StridedCopy(run=8, loops=((2, 18, 8),)), "its source stride 18 B is 2 modulo 4 B"),
        (
            StridedCopy(run=2048, loops=((17, 4096, 2048),)),
            "it needs 17 descriptors > 16 of aie_bd",
        ),
    ],
)
def test_what_no_chain_can_express_is_said_with_both_numbers(block: StridedCopy, said: str) -> None:
    assert said in next(defects_of(block, CONTROLLERS["aie_bd"]))


def test_the_checker_applies_the_limits_of_an_engines_controller() -> None:
    limited = with_engine(CORE_DMA, controller="aie_bd")
    assert "transfer_limits" not in broken(PLAN, limited)
    residencies = list(PLAN.residencies)
    residencies[7] = replace(residencies[7], offset=130)
    messages = broken(replace(PLAN, residencies=tuple(residencies)), limited)["transfer_limits"]
    assert any("its source address 130 B is 2 modulo 4 B" in message for message in messages)
