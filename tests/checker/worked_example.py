"""A small valid plan by hand that uses everything a plan can have; both files lie in the suite.

Two scratchpads behind an L2: core c0 works in spm0, cores c1 and c2 share spm1. Loads from DRAM
stop in the L2; x0 is multicast to both scratchpads; b replaces a in place; c1 reads b remotely; c
is spilled to DRAM and loaded again; y0 and y1 are the left and right half of the output y. Sources
end when all is sent; the DMA at DRAM, which is pipelined, takes x1 while x0 is on its way.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from spmilp.checker.check import check
from spmilp.plan.file import read_plan
from spmilp.plan.plan import Plan
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem, Slice

DRAM, L2, SPM0, SPM1 = range(4)
DRAM_DMA, L2_DMA, CORE_DMA = range(3)
X0, X1, W, A, B, C, Y0, Y1, X0_LEFT, X1_TOP = range(10)

FOLDER = Path(__file__).parents[2] / "instances" / "conformance"
PROBLEM = read_problem(FOLDER / "problems" / "worked-example.json")
MACHINE = PROBLEM.machine
PLAN = replace(read_plan(FOLDER / "plans" / "valid-1-worked-example.json"), problem_sha256="")


def changed(plan: Plan = PLAN, **tables: dict[int, dict[str, Any]]) -> Plan:
    """Return a plan with fields of some placements, residencies or transfers replaced."""
    new: dict[str, Any] = {}
    for table, changes in tables.items():
        rows = list(getattr(plan, table))
        for index, fields in changes.items():
            rows[index] = replace(rows[index], **fields)
        new[table] = tuple(rows)
    return replace(plan, **new)


def with_engine(index: int, problem: Problem = PROBLEM, **fields: Any) -> Problem:
    """Return the problem on a machine with an engine of other limits."""
    engines = list(problem.machine.engines)
    engines[index] = replace(engines[index], **fields)
    return replace(problem, machine=replace(problem.machine, engines=tuple(engines)))


def with_machine(**fields: Any) -> Problem:
    """Return the problem on another machine."""
    return replace(PROBLEM, machine=replace(MACHINE, **fields))


def with_task(index: int, more: tuple[Slice, ...] = (), **fields: Any) -> Problem:
    """Return the problem with another task, and with more slices."""
    tasks = list(PROBLEM.tasks)
    tasks[index] = replace(tasks[index], **fields)
    return replace(PROBLEM, tasks=tuple(tasks), slices=(*PROBLEM.slices, *more))


def broken(plan: Plan, problem: Problem = PROBLEM) -> dict[str, list[str]]:
    """Return the messages of the checker by rule."""
    found: dict[str, list[str]] = {}
    for violation in check(problem, plan):
        found.setdefault(violation.rule, []).append(violation.message)
    return found
