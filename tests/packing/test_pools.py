"""Several pools: least costs and heights, proofs, what does not fit, and the check."""

from dataclasses import replace
from pathlib import Path

import pytest

import spmilp
from spmilp.packing import (
    Buffer,
    Item,
    PackingOptions,
    PackingStatus,
    Pool,
    PoolProblem,
    assignment,
    check_pools,
    pack_pools,
)
from spmilp.packing.pools import pool_of
from tests.packing.pools import least_cost_and_height, random_problem


def buffer(name: str, size: int, start: int, end: int, *pools: str, at_end: bool = False) -> Buffer:
    item = Item(size=size, lifetimes=((start, end),))
    return Buffer(name=name, item=item, pools=pools, at_end=at_end)


def problem_of(*buffers: Buffer, pools: str) -> PoolProblem:
    return PoolProblem(buffers=buffers, pools=tuple(map(pool_of, pools.split())))


@pytest.mark.parametrize(
    "seeds",
    [
        range(20),
        *(pytest.param(range(a, a + 20), marks=pytest.mark.full) for a in range(20, 200, 20)),
    ],
    ids=lambda seeds: f"from {seeds[0]}",
)
def test_costs_and_heights_are_those_of_a_second_opinion(seeds: range) -> None:
    for seed in seeds:
        problem = random_problem(seed)
        found = pack_pools(problem, PackingOptions(node_limit=3_000_000))
        least = least_cost_and_height(problem)
        if least is None:
            assert found.status is PackingStatus.INFEASIBLE, seed
            left = sum(problem.buffers[b].item.size for b in found.left_out)
            assert left == found.least_left_out, seed
            if seed % 4 == 0:
                assert (left, 0) <= (least_cost_and_height(problem, may_leave_out=True) or ()), seed
            continue
        assert found.status is PackingStatus.OPTIMAL, seed
        assert found.places is not None
        assert found.heights is not None
        assert check_pools(problem, found.places) == []
        assert (found.cost, sum(found.heights)) == least, seed
        assert (found.cost_bound, found.heights_bound) == least, seed


def test_two_short_buffers_take_the_fast_bank_where_a_greedy_planner_puts_a_large_one() -> None:
    """Banks with capacities (executorch#21821): each buffer into the fastest that can hold it."""
    buffers = (buffer("a", 60, 0, 2), buffer("b", 50, 0, 1), buffer("c", 50, 1, 2))
    found = pack_pools(problem_of(*buffers, pools="tcm=100 sram=1K,cost=1"))

    assert (found.status, found.cost) == (PackingStatus.OPTIMAL, 60)
    assert {name: pool for name, (pool, _) in found.by_name.items()} == {
        "a": "sram",
        "b": "tcm",
        "c": "tcm",
    }


def test_what_is_pinned_comes_first_and_a_pool_nobody_names_is_only_for_those_pinned() -> None:
    pinned, free = buffer("pinned", 80, 0, 2, "tcm"), buffer("free", 90, 0, 2, "tcm", "sram")
    found = pack_pools(problem_of(free, pinned, pools="tcm=100 dma=1K sram=100,cost=1"))

    assert (found.by_name["pinned"][0], found.by_name["free"][0]) == ("tcm", "sram")


def test_an_arena_too_large_for_the_fast_memory_is_divided() -> None:
    """140 kB where the fast memory has 128 kB (tflite-micro#2627): 12 kB alone lie outside it."""
    buffers = (
        buffer("input", 60_000, 0, 2),
        buffer("conv", 68_000, 1, 3),
        buffer("state", 12_000, 0, 9),
        buffer("fc", 40_000, 2, 4),
    )
    found = pack_pools(problem_of(*buffers, pools="sram=128000 external=32M,cost=10"))

    assert (found.status, found.cost) == (PackingStatus.OPTIMAL, 120_000)
    assert found.by_name["state"] == ("external", 0)


def test_half_of_a_double_buffer_shares_bytes_with_what_a_library_claims_later() -> None:
    """A unified buffer of 192 KiB (tilelang-ascend#1286): 224 KiB in all, never at one time."""
    halves = [buffer(name, 32 << 10, 0, 4) for name in ("mm_res_a", "mm_res_b")]
    kept, claimed = buffer("kept", 64 << 10, 0, 9), buffer("topk_tmp", 96 << 10, 4, 8, at_end=True)
    found = pack_pools(problem_of(kept, *halves, claimed, pools="ub=192K"))

    assert found.status is PackingStatus.OPTIMAL
    assert found.by_name["topk_tmp"] == ("ub", 96 << 10)
    assert any(found.by_name[one.name][1] + one.item.size > 96 << 10 for one in (kept, *halves))


def test_a_workspace_lies_at_the_end_of_its_pool_and_nothing_on_it() -> None:
    workspace = buffer("workspace", 30, 1, 2, "sram", at_end=True)
    claimed = replace(
        buffer("claimed", 10, 0, 3, "sram"), item=Item(size=10, lifetimes=((0, 3),), offset=20)
    )
    problem = problem_of(
        workspace, claimed, buffer("x", 32, 0, 2), pools="sram=100,align=8 ext=1K,cost=1"
    )
    with pytest.raises(ValueError, match="at the end of its pool and at offset 20"):
        replace(claimed, at_end=True)
    assert problem.why_not_in(1, 0) == "its offset 20 B is no multiple of 8 B in sram"
    problem = replace(problem, pools=(pool_of("sram=100,align=4"), problem.pools[1]))
    found = pack_pools(problem)

    assert found.by_name["workspace"] == ("sram", 68)
    assert found.by_name["claimed"] == ("sram", 20)
    assert (found.by_name["x"], found.cost) == (("sram", 32), 0)


def test_what_does_not_fit_is_said_with_both_numbers_and_proven() -> None:
    problem = problem_of(
        buffer("w3", 300_000, 0, 9, "sram"),
        buffer("a", 250_000, 2, 5),
        buffer("b", 64_000, 3, 6),
        pools="sram=256K dtcm=64K,reserve=0-16K",
    )
    found = pack_pools(problem)

    assert found.status is PackingStatus.INFEASIBLE
    assert found.reasons == (
        "buffer w3 of 300,000 B fits no pool that it may lie in: sram has 262,144 B",
        "in [3, 5) 2 buffers a, b need 314,000 B, and fit only into sram, dtcm, with 311,296 B: "
        "2,704 B too many",
    )
    assert (found.left_out, found.least_left_out) == ((0, 2), 364_000)


def test_banks_of_one_kind_that_no_load_refuses_are_refused_by_the_packer() -> None:
    """Three of 60 B have 180 B, less than two banks have."""
    buffers = tuple(buffer(name, 60, 0, 1) for name in "abc")
    found = pack_pools(problem_of(*buffers, pools="one=100 two=100"))

    assert (found.status, found.reasons, found.least_left_out) == ("infeasible", (), 60)


def test_a_limit_leaves_a_packing_with_a_bound_and_the_same_one_each_time() -> None:
    problem = random_problem(1)
    limited = [pack_pools(problem, PackingOptions(node_limit=1)) for _ in range(2)]
    best = pack_pools(problem)

    assert limited[0].places == limited[1].places
    for found in limited:
        assert best.cost is not None
        assert found.cost is not None
        assert found.cost_bound <= best.cost <= found.cost


def test_an_interrupt_keeps_the_best_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(assignment._Master, "least", interrupted)
    buffers = (buffer("a", 60, 0, 2), buffer("b", 50, 0, 1), buffer("c", 50, 1, 2))
    found = pack_pools(problem_of(*buffers, pools="tcm=100 sram=1K,cost=1"))

    assert found.status is PackingStatus.FEASIBLE
    assert check_pools(found.problem, found.places or ()) == []


PLACED = PoolProblem(
    buffers=(
        buffer("a", 8, 0, 2, "one"),
        buffer("b", 8, 0, 2),
        buffer("c", 8, 0, 2, at_end=True),
        buffer("d", 8, 1, 3),
    ),
    pools=(
        Pool(name="one", capacity=32, alignment=4, reserved=((16, 20),)),
        Pool(name="two", capacity=29, alignment=4),
    ),
)
VALID = ((0, 0), (0, 8), (1, 20), (1, 0))


@pytest.mark.parametrize(
    ("moved", "to", "rule", "items"),
    [
        (0, (1, 8), "in_its_pools", (0,)),
        (0, (2, 0), "in_its_pools", (0,)),
        (1, (0, 4), "disjoint", (0, 1)),
        (1, (0, 12), "outside_reserved", (1,)),
        (1, (0, 28), "inside", (1,)),
        (1, (0, -4), "inside", (1,)),
        (2, (1, 16), "at_the_end", (2,)),
        (3, (1, 2), "aligned", (3,)),
        (3, (1, 16), "disjoint", (2, 3)),
    ],
)
def test_the_check_catches_each_kind_of_wrong_place(
    moved: int, to: tuple[int, int], rule: str, items: tuple[int, ...]
) -> None:
    assert check_pools(PLACED, VALID) == []
    found = check_pools(PLACED, (*VALID[:moved], to, *VALID[moved + 1 :]))
    assert (rule, items) in {(one.rule, one.items) for one in found}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sram", "write NAME=BYTES"),
        ("=64K", "expected a name"),
        ("a|b=64K", "expected a name"),
        ("sram=lots", "'lots' is no size"),
        ("sram=64K,cost=1.5", "a whole number"),
        ("sram=64K,speed=2", "there may be cost=N"),
        ("sram=64K,align=0", "expected 1 to"),
        ("sram=64K,reserve=8-4", "is empty"),
    ],
)
def test_pools_that_are_malformed_are_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        pool_of(text)


def test_a_file_and_texts_are_enough(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("id,lower,upper,size,pools\na,0,2,60,\nb,0,1,50,tcm | sram\nc,1,2,50,tcm\n")
    found = spmilp.pack(file, ["tcm=100", Pool(name="sram", capacity=1024, cost=1)], minimise=True)

    assert (found.status, found.cost, found.heights) == ("optimal", 60, (50, 60))
    with pytest.raises(ValueError, match="buffer b: no pool 'sram'; there are tcm"):
        spmilp.pack(file, ["tcm=100"])
    with pytest.raises(ValueError, match="pools tcm, tcm: expected one, each name once"):
        spmilp.pack(file, ["tcm=100", "tcm=4"])
