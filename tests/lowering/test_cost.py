import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.frontend.operators.geometry import Work
from spmilp.lowering.cost import cycles_by_kind, lanes_of, task_cycles
from spmilp.machine.machine import CoreKind, MacArray
from tests.lowering.builders import NetworkBuilder

ARRAY = MacArray(dtype="int8", unroll=(("K", 16), ("C", 8)))
KIND = CoreKind(
    index=0,
    name="pe",
    arrays=(ARRAY, MacArray(dtype="int8", unroll=(("X", 4),))),
    lanes=(("int8", 16), ("float32", 4)),
    launch=5,
    mac_energy=(("int8", 3),),
)


@pytest.mark.parametrize(
    ("work", "cycles"),
    [
        # Partial tiles leave multipliers idle, and without an array the lanes do the MACs.
        (Work(loops=(("K", 17), ("C", 8), ("X", 10)), dtype="int8"), 5 + 2 * 1 * 10),
        (Work(loops=(("K", 3), ("C", 5)), dtype="float32"), 5 + 4),
        (Work(loops=(("K", 16), ("C", 8)), vector=17, dtype="int8"), 5 + 1 + 2),
    ],
)
def test_a_task_takes_a_launch_the_steps_of_an_array_and_vector_work(
    work: Work, cycles: int
) -> None:
    assert task_cycles(work, KIND) == cycles


def test_a_type_that_is_not_mentioned_fills_the_width_of_the_lanes() -> None:
    assert lanes_of(KIND, "float16") == 8
    assert lanes_of(KIND, "int64") == 2


@given(st.integers(1, 100), st.integers(1, 100), st.integers(1, 100), st.integers(0, 50))
@settings(derandomize=True)
def test_cutting_a_tile_never_makes_the_sum_faster(k: int, c: int, x: int, cut: int) -> None:
    cut = min(cut, k - 1)
    whole = task_cycles(Work(loops=(("K", k), ("C", c), ("X", x)), dtype="int8"), KIND)
    parts = [
        task_cycles(Work(loops=(("K", part), ("C", c), ("X", x)), dtype="int8"), KIND)
        for part in (cut, k - cut)
        if part > 0
    ]
    assert whole is not None
    assert sum(part for part in parts if part is not None) >= whole


def test_a_kind_cannot_run_a_group_with_an_operator_that_it_does_not_list() -> None:
    builder = NetworkBuilder("int8")
    network = builder.network(builder.conv(builder.input((1, 4, 8, 8)), 4))
    lists_conv = CoreKind(
        index=0, name="a", arrays=(ARRAY,), lanes=KIND.lanes, operators=frozenset({"Conv"})
    )
    lists_both = CoreKind(
        index=1, name="b", lanes=KIND.lanes, operators=frozenset({"Conv", "Relu"})
    )
    work = Work(vector=16, dtype="int8")
    assert cycles_by_kind(network.groups[0], work, (lists_conv, lists_both)) == (None, 1)
