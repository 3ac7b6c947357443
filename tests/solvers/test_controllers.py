"""What a named controller cannot express is in no plan: solvers go around it, or name it."""

from dataclasses import replace

import pytest

from spmilp.checker.check import check
from spmilp.lowering.limits import dma_limits
from spmilp.machine.machine import Machine
from spmilp.machine.read import as_machine_file
from spmilp.pipeline import solve
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from tests.acceptance.doors import MODELS
from tests.oracle.solver import solver_named
from tests.solvers.chains import star

SOLVERS = ("list", "search", "auto", "cpsat", "milp", "bruteforce")


def controlled(cores: int = 2) -> Machine:
    """Return a star whose engines move words of 4 B, in 16 descriptors at most."""
    machine = star(cores, 1024)
    engines = tuple(replace(engine, controller="aie_bd") for engine in machine.engines)
    memories = tuple(replace(memory, alignment=4) for memory in machine.memories)
    return replace(machine, engines=engines, memories=memories)


def columns(width: int, read: int) -> Problem:
    """Return a task that reads the first columns of an input of 8 rows."""
    b = ProblemBuilder(controlled(), name="columns")
    x = b.input("x", (8, width), "int8")
    b.output(b.task("a", reads=x[:, :read], writes=("y", (64,), "int8"), cycles=10))
    return b.build()


@pytest.mark.parametrize("solver", [one for one in SOLVERS if one != "auto"])
def test_what_cannot_be_moved_by_itself_comes_with_the_whole(solver: str) -> None:
    for width, read, moved in ((8, 4, 32), (8, 6, 64), (6, 4, 48)):
        problem = columns(width, read)
        found = solver_named(solver).solve(problem, SolveOptions(time_limit=60.0))
        if found.plan is None:
            # They bring what is read, and never the whole in its place.
            assert solver in {"list", "search"}
            assert "4 B, the unit of aie_bd" in found.reason
            continue
        assert check(problem, found.plan) == ()
        loads = [m for m in found.plan.transfers if problem.slices[m.slice].buffer == 0]
        assert sum(problem.slices[load.slice].bytes for load in loads) == moved


@pytest.mark.parametrize("solver", [one for one in SOLVERS if one != "bruteforce"])
def test_what_cannot_be_moved_at_all_is_named_and_no_defect(solver: str) -> None:
    b = ProblemBuilder(controlled(1), name="odd")
    x = b.input("x", (10,), "int8")
    b.output(b.task("a", reads=[x], writes=("y", (64,), "int8"), cycles=10))
    found = solver_named(solver).solve(b.build(), SolveOptions(time_limit=10.0))
    assert found.plan is None
    assert "no engine" in found.reason
    assert "x" in found.reason
    assert found.status in (SolveStatus.INFEASIBLE, SolveStatus.UNKNOWN)
    if solver == "list":
        assert "its run 10 B is 2 modulo 4 B, the unit of aie_bd" in found.reason


def test_lowering_cuts_what_takes_too_many_descriptors() -> None:
    limits = dma_limits(controlled())
    # 40 rows of 2,048 B: longer than a row of a descriptor with loops, so one for each.
    assert limits.pieces((40, 2048), 1, (4096, 1)) == (40, 1)
    assert limits.pieces((16, 2048), 1, (4096, 1)) == (1, 1)
    # Of three loops one is written out: 20 turns of it are too many, 16 are not.
    assert limits.pieces((16, 4, 4, 8), 1, (4096, 512, 64, 1)) == (1, 1, 1, 1)
    assert limits.pieces((20, 4, 4, 8), 1, (4096, 512, 64, 1)) != (1, 1, 1, 1)


def test_networks_are_cut_so_that_a_controller_can_move_the_tiles() -> None:
    """Rows of 32 B with halos and strides: 31 of them are asked for, and no column by itself."""
    machine = as_machine_file("xdna1").machine
    engines = tuple(replace(engine, controller="aie_bd") for engine in machine.engines)
    found = solve(
        MODELS / "resnet8_int8.onnx",
        replace(machine, engines=engines),
        solver="greedy:contiguous/depth_first",
        time_limit=None,
    )
    assert found.plan is not None, found.reason
    assert found.violations == ()
    assert {part.bytes % 4 for part in found.problem.slices if part.bytes != 10} == {0}
