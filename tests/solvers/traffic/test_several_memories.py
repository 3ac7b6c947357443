"""What other memories on the chip are good for: to wait in, to pass through, to work in."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.exact.cosma.setting import compulsory_bytes, problem_of
from spmilp.checker.check import check
from spmilp.machine.machine import Core, CoreKind, Engine, Link, Memory, MemoryKind
from spmilp.policies.cosma import Network
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.traffic import solver
from spmilp.solvers.traffic.solver import Residency
from tests.solvers.fork import FORK, WAITING

INSTANCES = Path(__file__).parents[3] / "instances" / "problems"
LINKED = (("dram", "spm"), ("spm", "dram"), ("spm", "other"), ("other", "spm"))


def beside(problem: Problem, kind: MemoryKind, *, core: bool, staged: bool = False) -> Problem:
    """Return a problem with another memory of 64 bytes, on the way to DRAM if it is *staged*."""
    machine = problem.machine
    other = Memory(index=2, name="other", kind=kind, size=64)
    ends = [*LINKED, ("dram", "other"), ("other", "dram")] if core or staged else LINKED
    rate = machine.engines[0].rate
    engine = replace(machine.engines[0], reaches=(2,) if staged else (0, 2))
    engines = [engine]
    if core or staged:
        engines.append(Engine(index=1, name="second", owner=2, reaches=(0,), rate=rate))
    kinds = (CoreKind(index=0, name="core"), CoreKind(index=1, name="second"))
    machine = replace(
        machine,
        memories=(*machine.memories, other),
        kinds=kinds,
        cores=(
            *machine.cores,
            *((Core(index=1, name="second", kind=1, memory=2),) if core else ()),
        ),
        links=tuple(
            Link(index=i, source=a, target=b, rate=rate, latency=0) for i, (a, b) in enumerate(ends)
        ),
        engines=tuple(engines),
    )
    tasks = tuple(
        replace(task, cycles=(10, 10 if core and task.name == "c" else None))
        for task in problem.tasks
    )
    return replace(problem, machine=machine, tasks=tasks)


def extra(problem: Problem, network: Network = WAITING) -> int:
    plan = Residency().solve(problem, SolveOptions()).plan
    assert check(problem, plan) == ()
    return plan.claim.dram_traffic - compulsory_bytes(network)


def test_what_lies_in_dram_anyhow_is_loaded_again_and_not_stored_for_it() -> None:
    output = replace(WAITING, outputs=frozenset({1, 4}))
    again = (*WAITING.operators[:3], replace(WAITING.operators[3], reads=(0, 3)))
    constant = replace(WAITING, sizes=(30, 10, 30, 30, 5), operators=again)

    assert extra(problem_of(output, 69), output) == 30
    assert extra(problem_of(constant, 65), constant) == 30


@pytest.mark.parametrize("kind", [MemoryKind.SPM, MemoryKind.SHARED])
def test_what_finds_no_room_waits_in_another_memory(kind: MemoryKind) -> None:
    problem = problem_of(WAITING, 69)

    assert extra(problem) == 60
    assert extra(beside(problem, kind, core=False)) == 0


@pytest.mark.parametrize(("size", "bytes_"), [(50, 0), (49, 60)])
def test_a_memory_on_the_way_to_dram_keeps_what_it_can(size: int, bytes_: int) -> None:
    # Tensor 1, of 30 bytes, waits while tensor 3, of 20, passes.
    network = replace(WAITING, outputs=frozenset({3, 4}))
    problem = beside(problem_of(network, 69), MemoryKind.SHARED, core=False, staged=True)
    *others, other = problem.machine.memories
    machine = replace(problem.machine, memories=(*others, replace(other, size=size)))

    assert extra(replace(problem, machine=machine)) == 20 + bytes_


def test_a_task_goes_where_it_leaves_room_for_others() -> None:
    problem = problem_of(WAITING, 69)

    assert extra(beside(problem, MemoryKind.SPM, core=True)) == 0


def test_what_is_too_large_to_search_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "MOST_USE_POINTS", 5)
    problem = problem_of(FORK, 100)
    found = Residency().solve(problem, SolveOptions())
    searched = Residency().solve(problem, SolveOptions(time_limit=5.0), found.plan)

    assert searched.plan.residencies == found.plan.residencies


@pytest.mark.parametrize(
    "name",
    [
        "decoder-30t-2c-crossbar-tight-balanced-energy",
        "autoencoder-60t-4c-mesh2x2-nolinks-tight-traffic-dramtraffic",
    ],
)
def test_with_all_tasks_on_one_core_nothing_moves_between_cores(name: str) -> None:
    problem = read_problem(INSTANCES / f"{name}.json")
    result = Residency().solve(problem, SolveOptions())

    assert check(problem, result.plan) == ()
    assert result.status is SolveStatus.OPTIMAL
    assert len({placement.core for placement in result.plan.placements}) == 1
