"""Optima that can be worked out by hand; see :mod:`.small` for what transfers take."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from spmilp.machine.machine import ByteRange, RemoteReads
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveStatus
from tests.oracle.small import DRAM, ProblemSketch, best_plan, machine, solve

PEAK = Quantity.PEAK_SPM


def one_task(size: int, in_place: bool = False, first: Quantity = Quantity.MAKESPAN) -> Problem:
    """Return a task that reads 16 bytes from DRAM and writes 16 to it."""
    sketch = ProblemSketch(machine(size)).buffer("a", 16, starts=DRAM).buffer("b", 16, ends=DRAM)
    over = {"b": "a"} if in_place else {}
    return sketch.task("t", 10, reads=["a"], writes=["b"], in_place=over).problem(first)


def test_one_task_is_loaded_computed_and_stored() -> None:
    # 7 to load, 10 to compute, 7 to store; 16 bytes there and back; both lie there side by side.
    claim = best_plan(one_task(64)).claim

    assert (claim.makespan, claim.dram_traffic, claim.peak_spm) == (24, 32, 32)


def spilling(size: int, first: Quantity) -> Problem:
    """Return tasks of which the second needs 32 bytes while 16 wait for the third."""
    sketch = ProblemSketch(machine(size)).buffer("b", 16, starts=DRAM).buffer("x", 16)
    sketch.buffer("y", 16, ends=DRAM).buffer("z", 16, ends=DRAM)
    sketch.task("t0", 5, writes=["x"]).task("t1", 5, reads=["b"], writes=["y"], after=[0])
    return sketch.task("t2", 5, reads=["x"], writes=["z"], after=[1]).problem(first)


def test_the_cycles_of_a_spill_on_the_one_channel() -> None:
    # On the channel: b in [0, 7), x out [7, 14), sent at 13; t1 in [13, 18) writes where x was; x
    # in [18, 25) where b was; y out [25, 32), sent at 31; t2 in [31, 36) writes there; z until 43.
    problem = spilling(32, Quantity.MAKESPAN)
    assert best_plan(problem).claim.makespan == 43
    # Pipelined: b [0, 6), x out [6, 12), t1 [12, 17), x in [17, 23), y out [23, 29), t2 [29, 34).
    pipelined = replace(problem, machine=machine(32, pipelined=True))
    assert best_plan(pipelined).claim.makespan == 41
    # With room for x: b [0, 7), t1 [7, 12), t2 [12, 17); y [12, 19), z [19, 26).
    assert best_plan(spilling(48, Quantity.MAKESPAN)).claim.makespan == 26


def test_a_transfer_waits_at_its_start_for_one_that_is_sent_during_its_set_up() -> None:
    # a is on the link in [0, 4), b on the same channel in [5, 9). c takes 6 to set up: it starts at
    # 3 and is on the link in [9, 13); t1 runs [10, 30), t0 [14, 30).
    sketch = ProblemSketch(machine(64, 64, kinds=2, between=False))
    for name in "abc":
        sketch.buffer(name, 16, starts=DRAM)
    sketch.task("t0", 16, None, reads=["c"]).task("t1", None, 20, reads=["a", "b"])
    problem = sketch.problem()
    slow, quick = problem.machine.engines
    engines = replace(slow, setup=6), replace(quick, setup=0)

    plan = best_plan(replace(problem, machine=replace(problem.machine, engines=engines)))

    assert plan.claim.makespan == 30


def test_in_place_a_task_needs_the_bytes_of_its_operand_only() -> None:
    claim = best_plan(one_task(16, in_place=True)).claim

    assert (claim.makespan, claim.peak_spm) == (24, 16)
    assert best_plan(one_task(64, in_place=True, first=PEAK)).claim.peak_spm == 16


def test_nothing_is_in_place_of_what_somebody_else_reads_later() -> None:
    # If u runs first, c lies beside a, and t writes b over a in the end: 32 bytes. If u reads b too
    # and so comes second, a must outlast t: a, b and c at one time.
    sketch = ProblemSketch(machine(32)).buffer("a", 16, starts=DRAM)
    sketch.buffer("b", 16).buffer("c", 16)
    sketch.task("t", 5, reads=["a"], writes=["b"], in_place={"b": "a"})
    sketch.task("u", 5, reads=["a"], writes=["c"])
    free = sketch.problem(PEAK)
    forced = replace(free, tasks=(free.tasks[0], replace(free.tasks[1], reads=(0, 1), after=(0,))))

    assert best_plan(free).claim.peak_spm == 32
    assert solve(forced).status is SolveStatus.INFEASIBLE


def pipeline(target: Quantity = Quantity.MAKESPAN, **machine_options: Any) -> Problem:
    """Return two tasks for cores of different kinds; the second reads what the first writes."""
    sketch = ProblemSketch(machine(64, 64, kinds=2, **machine_options)).buffer("x", 16)
    sketch.task("t0", 5, None, writes=["x"]).task("t1", None, 5, reads=["x"])
    return sketch.problem(target)


def test_from_core_to_core_data_goes_straight_or_through_dram() -> None:
    # 5 + 6 + 5 straight; without such engines 5 + 7 + 7 + 5.
    assert best_plan(pipeline()).claim.makespan == 16
    through_dram = best_plan(pipeline(between=False)).claim
    assert (through_dram.makespan, through_dram.dram_traffic) == (24, 32)


def test_a_remote_read_is_taken_where_it_beats_a_copy() -> None:
    # Over two links at 1/16 cycle each: 16 * 2 / 16 = 2 more cycles, less than the 6 of a copy.
    cheap = best_plan(pipeline(remote=RemoteReads(cycles_per_byte_hop=Fraction(1, 16))))
    dear = best_plan(pipeline(remote=RemoteReads(cycles_per_byte_hop=Fraction(1, 2))))
    short = RemoteReads(cycles_per_byte_hop=Fraction(1, 16), longest_route=1)

    assert cheap.claim.makespan == 5 + 7
    assert cheap.transfers == ()
    assert dear.claim.makespan == 16
    assert best_plan(pipeline(remote=short)).claim.makespan == 16


def shared_weights(multicast: bool) -> Problem:
    sketch = ProblemSketch(machine(64, 64, kinds=2, between=False, multicast=multicast))
    sketch.buffer("w", 16, starts=DRAM)
    sketch.task("t0", 5, None, reads=["w"]).task("t1", None, 5, reads=["w"])
    return sketch.problem()


def test_one_multicast_beats_two_loads() -> None:
    two = best_plan(shared_weights(multicast=False)).claim
    one = best_plan(shared_weights(multicast=True)).claim

    assert (two.makespan, two.dram_traffic) == (7 + 4 + 5, 32)
    assert (one.makespan, one.dram_traffic) == (7 + 5, 16)


def test_bytes_that_alignment_wastes_are_missed() -> None:
    sketch = ProblemSketch(machine(23, alignment=8)).buffer("a", 10, starts=DRAM).buffer("b", 8)
    sketch.task("t", 5, reads=["a"], writes=["b"])
    problem = sketch.problem()

    # With a below, b would end at 16 + 8 = 24; with b below, a ends at 8 + 10 = 18.
    assert best_plan(problem).claim.peak_spm == 18
    assert solve(replace(problem, machine=machine(17, alignment=8))).status is (
        SolveStatus.INFEASIBLE
    )


def test_what_fits_by_its_bytes_may_not_fit_between_reserved_ones() -> None:
    # 12 bytes below the reserved ones and 24 above: 36 in all, but only one piece of 16 fits.
    hole = (ByteRange(12, 16),)
    sketch = ProblemSketch(machine(40, reserved=hole)).buffer("a", 16, starts=DRAM).buffer("b", 16)
    problem = sketch.task("t", 5, reads=["a"], writes=["b"]).problem()

    result = solve(problem)

    assert result.status is SolveStatus.INFEASIBLE
    assert best_plan(replace(problem, machine=machine(48, reserved=hole))).claim.peak_spm == 48


def test_an_engine_that_wants_congruent_addresses_finds_them_or_there_is_no_plan() -> None:
    # The first byte is reserved, so a 16 byte slice in 17 bytes lies at address 1. The tensor can
    # lie at an address that is 1 modulo 4, unless DRAM gives out multiples of 4 only.
    sketch = ProblemSketch(machine(17, reserved=(ByteRange(0, 1),))).buffer("a", 16, starts=DRAM)
    problem = sketch.task("t", 5, reads=["a"]).problem()
    particular = tuple(replace(e, congruence=4) for e in problem.machine.engines)
    wants = replace(problem, machine=replace(problem.machine, engines=particular))
    dram, spm = wants.machine.memories
    coarse = replace(wants.machine, memories=(replace(dram, alignment=4), spm))

    plan = best_plan(wants)

    assert plan.residencies[0].offset % 4 == plan.residencies[1].offset % 4 == 1
    assert solve(replace(wants, machine=coarse)).status is SolveStatus.INFEASIBLE


def test_an_engine_of_one_dimension_cannot_gather_rows() -> None:
    sketch = ProblemSketch(machine(64)).buffer("a", 16, starts=DRAM).task("t", 5, reads=["a"])
    problem = sketch.problem()
    place = problem.buffers[0].place
    assert place is not None
    grid = replace(problem.buffers[0], shape=(4, 4), place=replace(place, start=(0, 4)))
    tensor = replace(problem.tensors[0], shape=(4, 8))
    rows = replace(
        problem,
        tensors=(tensor,),
        buffers=(grid,),
        slices=(replace(problem.slices[0], start=(0, 0), extent=(4, 4)),),
    )
    plain = tuple(replace(e, dimensions=1) for e in rows.machine.engines)

    assert best_plan(rows).claim.makespan == 12
    result = solve(replace(rows, machine=replace(rows.machine, engines=plain)))
    assert result.status is SolveStatus.INFEASIBLE


def test_what_must_end_in_a_scratchpad_stays_there() -> None:
    # a and b need 16 bytes each at one time, and b must stay while u reads c beside it.
    sketch = ProblemSketch(machine(32)).buffer("a", 16, starts=DRAM).buffer("b", 16, ends=1)
    sketch.buffer("c", 16, starts=DRAM)
    sketch.task("t", 5, reads=["a"], writes=["b"]).task("u", 5, reads=["c"], after=[0])
    problem = sketch.problem()

    # c comes into the bytes of a once t has ended: 7 + 5 + 7 + 5.
    assert best_plan(problem).claim.makespan == 24
    assert best_plan(replace(problem, machine=machine(48))).claim.makespan == 19
