"""What the list scheduler evicts, and what it rather waits for."""

from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.small import ProblemSketch, machine

SIZE = 100
CYCLES_OF_A_LOAD = 2 + 1 + SIZE // 4
ROOM = 2 * SIZE + 2 * 4
"""For two of what is large, and for what two tasks write."""


def in_one_pass(problem: Problem) -> Plan:
    plan = ListScheduler(("contiguous", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert check(problem, plan) == ()
    return plan


def test_a_load_that_dram_keeps_waiting_takes_bytes_that_are_free_by_then() -> None:
    sketch = ProblemSketch(machine(ROOM))
    for name in ("again", "once", "next"):
        sketch.buffer(name, SIZE, starts=0)
    sketch.buffer("small", 4).buffer("end", 4)
    sketch.task("first", 10, reads=["again"])
    sketch.task("second", 5, reads=["once"], writes=["small"])
    sketch.task("third", 10, reads=["next", "small"], writes=["end"])
    sketch.task("last", 10, reads=["again", "end"])

    plan = in_one_pass(sketch.problem())

    # Not those of "again", which are free when the engine is busy with "once".
    assert plan.claim.dram_traffic == 3 * SIZE


def test_no_result_leaves_whose_store_has_to_wait_for_the_engine() -> None:
    sketch = ProblemSketch(machine(ROOM))
    for name in ("once", "next"):
        sketch.buffer(name, SIZE, starts=0)
    sketch.buffer("result", SIZE).buffer("small", 4).buffer("end", 4)
    sketch.task("first", 10, writes=["result"])
    sketch.task("second", 40, reads=["once"], writes=["small"])
    sketch.task("third", 10, reads=["next", "small"], writes=["end"])
    sketch.task("last", 10, reads=["result", "end"])

    plan = in_one_pass(sketch.problem())

    assert 10 + CYCLES_OF_A_LOAD < 40, "on idle hardware it would be away by the end of the second"
    assert plan.claim.dram_traffic == 2 * SIZE
