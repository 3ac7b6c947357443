"""Bounds that can be worked out by hand; see :mod:`tests.oracle.small` for cycles."""

from dataclasses import replace
from fractions import Fraction

import pytest

from spmilp.bounds.best import all_bounds
from spmilp.machine.machine import ByteRange, MemoryKind, RemoteReads
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from tests.oracle.small import DRAM, ProblemSketch, best_plan, machine

ENERGY, PEAK, TRAFFIC = Quantity.ENERGY, Quantity.PEAK_SPM, Quantity.DRAM_TRAFFIC


def bounds(problem: Problem) -> dict[str, int]:
    return {bound.name: bound.value for bound in all_bounds(problem)}


def layers(cores: int, count: int, width: int) -> Problem:
    """Return layers of tasks of 10 cycles, each after all of the layer before; no data."""
    sketch = ProblemSketch(machine(*[64] * cores))
    for layer in range(count):
        before = range((layer - 1) * width, layer * width) if layer else ()
        for n in range(width):
            sketch.task(f"t{layer}_{n}", 10, after=before)
    return sketch.problem()


def test_the_cuts_between_layers_add_up() -> None:
    # Three tasks on two cores take 20 cycles, layer by layer: 20 + 20 + 20, though the work of a
    # layer is 15 only. The cut at a task of the last layer counts 20 + 20 + 10; that layer's work
    # after its head counts all. The longest chain has 30 cycles.
    found = bounds(layers(cores=2, count=3, width=3))

    assert found["critical path"] == 30
    assert found["cuts"] == 50
    assert found["work"] == 60
    assert best_plan(layers(cores=2, count=2, width=3)).claim.makespan == 40


@pytest.mark.parametrize(
    ("channels", "pipelined", "least"),
    [(2, False, 2 + 4 + 4 + 1), (1, True, 6 + 6 + 1), (1, False, 7 + 7)],
)
def test_what_a_task_loads_and_stores_passes_one_link_and_the_channels(
    channels: int, pipelined: bool, least: int
) -> None:
    # 16 bytes take 2 cycles to set up, hold the link of DRAM for 4 and have arrived one later. Two
    # channels set up at once; a single one does so when all is sent, or when it has arrived.
    sketch = ProblemSketch(machine(64, channels=channels, pipelined=pipelined))
    for name in "ab":
        sketch.buffer(name, 16, starts=DRAM)
    loading = sketch.task("t", 5, reads=["a", "b"]).problem()

    assert bounds(loading)["critical path"] == 7 + 5
    for argument in ("traffic", "cuts"):
        assert bounds(loading)[argument] == best_plan(loading).claim.makespan == least + 5

    sketch = ProblemSketch(loading.machine)
    for name in "ab":
        sketch.buffer(name, 16, ends=DRAM)
    storing = sketch.task("t", 5, writes=["a", "b"]).problem()
    for argument in ("traffic", "cuts"):
        assert bounds(storing)[argument] == best_plan(storing).claim.makespan == 5 + least


def test_where_nothing_moves_no_set_up_and_no_latency_counts() -> None:
    problem = ProblemSketch(machine(64)).task("t", 1).problem()

    assert {bound.value for bound in all_bounds(problem) if bound.quantity == "makespan"} <= {0, 1}


@pytest.mark.parametrize(("size", "least"), [(24, 16 + 24), (32, 32)])
def test_slices_of_a_buffer_too_large_for_the_chip_leave_dram_one_by_one(
    size: int, least: int
) -> None:
    # The first 16 and the first 24 of 32 bytes; a scratchpad that takes all 32 may load just these.
    sketch = ProblemSketch(machine(size)).buffer("x", 32, starts=DRAM)
    sketch.task("t0", 5, reads=[("x", 16)]).task("t1", 5, reads=[("x", 24)])
    problem = sketch.problem(TRAFFIC)

    assert bounds(problem)["compulsory traffic"] == least
    assert best_plan(problem).claim.dram_traffic == least


def test_data_of_a_task_on_another_kind_of_core_has_to_move() -> None:
    sketch = ProblemSketch(machine(64, 64, kinds=2)).buffer("x", 16)
    sketch.task("t0", 5, None, writes=["x"]).task("t1", None, 5, reads=["x"])

    assert bounds(sketch.problem())["critical path"] == 5 + 6 + 5
    near = replace(
        sketch.problem(), machine=machine(64, 64, kinds=2, remote=RemoteReads(
            cycles_per_byte_hop=Fraction(1, 16)))
    )  # fmt: skip
    assert bounds(near)["critical path"] == 5 + 5


def test_what_stops_on_its_way_takes_both_transfers() -> None:
    # spm1 stands for a shared memory, the only one that DRAM's engine reaches: 7 + 6 cycles.
    sketch = ProblemSketch(machine(64, 64)).buffer("a", 16, starts=DRAM).task("t", 5, reads=["a"])
    plain = sketch.problem()
    dram, near, far = plain.machine.memories
    staged = replace(
        plain.machine,
        memories=(dram, near, replace(far, kind=MemoryKind.SHARED)),
        cores=plain.machine.cores[:1],
        engines=(
            replace(plain.machine.engines[0], reaches=(far.index,)),
            replace(plain.machine.engines[1], reaches=(DRAM,)),
        ),
    )
    problem = replace(plain, machine=staged)

    assert bounds(plain)["critical path"] == 7 + 5
    assert bounds(problem)["critical path"] == 7 + 6 + 5
    assert best_plan(problem).claim.makespan == 18


def test_what_finds_no_room_beside_a_task_goes_out_and_comes_back() -> None:
    # x (16 bytes) waits while t1 needs 32 of 40 bytes: all of it goes out and comes back.
    sketch = ProblemSketch(machine(40)).buffer("b", 16, starts=DRAM).buffer("x", 16)
    sketch.buffer("y", 16, ends=DRAM).buffer("z", 16, ends=DRAM)
    sketch.task("t0", 5, writes=["x"]).task("t1", 5, reads=["b"], writes=["y"], after=[0])
    problem = sketch.task("t2", 5, reads=["x"], writes=["z"], after=[1]).problem(TRAFFIC)
    found = bounds(problem)

    assert found["compulsory traffic"] == 3 * 16
    assert found["spills"] == 5 * 16
    assert best_plan(problem).claim.dram_traffic == 5 * 16
    assert bounds(replace(problem, machine=machine(48)))["spills"] == 3 * 16


def test_energy_counts_tasks_and_the_cheapest_way_of_each_byte() -> None:
    sketch = (
        ProblemSketch(machine(64, 64, kinds=2))
        .buffer("a", 16, starts=DRAM)
        .buffer("b", 8, ends=DRAM)
    )
    sketch.task("t", 5, 9, reads=["a"], writes=["b"], energy=(50, 7))
    plain = sketch.problem(ENERGY)
    costs = {"dram": 100, "spm0": 1, "spm1": 3}
    problem = replace(
        plain,
        machine=replace(
            plain.machine,
            memories=tuple(
                replace(m, energy_per_byte=costs[m.name]) for m in plain.machine.memories
            ),
        ),
    )

    # The frugal kind, 7; and each byte at least over the cheaper scratchpad.
    assert bounds(problem)["energy"] == 7 + 24 * 101
    assert best_plan(problem).claim.energy == min(50 + 24 * 101, 7 + 24 * 103)


@pytest.mark.parametrize(
    ("alignment", "reserved", "peak"),
    [
        (1, (), 25),
        (8, (), 16 + 10),
        (8, (ByteRange(0, 8),), 8 + 26),
        (8, (ByteRange(16, 24),), 8 + 26),
        (8, (ByteRange(32, 40),), 26),
        (8, (ByteRange(3, 5),), 2 + 25),
    ],
)
def test_a_working_set_lies_aligned_and_beside_reserved_bytes(
    alignment: int, reserved: tuple[ByteRange, ...], peak: int
) -> None:
    # 15 bytes below and 10 above, which leaves the least above the last multiple of 8: 16 + 10.
    sketch = ProblemSketch(machine(64, alignment=alignment, reserved=reserved))
    sketch.buffer("a", 10, starts=DRAM).buffer("b", 15).task("t", 5, reads=["a"], writes=["b"])
    problem = sketch.problem(PEAK)

    assert bounds(problem)["working set"] == peak
    assert best_plan(problem).claim.peak_spm >= peak


def test_in_place_of_a_smaller_operand_only_the_rest_is_new() -> None:
    sketch = ProblemSketch(machine(64)).buffer("a", 10, starts=DRAM).buffer("b", 15)
    sketch.task("t", 5, reads=["a"], writes=["b"], in_place={"b": "a"})
    problem = sketch.problem(PEAK)

    assert bounds(problem)["working set"] == best_plan(problem).claim.peak_spm == 15


def test_a_core_that_works_in_dram_loads_nothing() -> None:
    sketch = ProblemSketch(machine(64)).buffer("a", 16, starts=DRAM).buffer("b", 16, ends=DRAM)
    plain = sketch.task("t", 5, reads=["a"], writes=["b"]).problem()
    cores = (replace(plain.machine.cores[0], memory=DRAM),)
    problem = replace(plain, machine=replace(plain.machine, cores=cores))
    plan = best_plan(problem)

    assert plan.claim.makespan == 5
    for bound in all_bounds(problem):
        assert bound.value <= {"makespan": 5}.get(str(bound.quantity), 0), bound
