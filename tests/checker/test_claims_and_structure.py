"""Stated numbers, and plans whose references lead nowhere."""

from dataclasses import replace
from typing import Any

import pytest

from checker.worked_example import PLAN, PROBLEM, broken, changed
from spmilp.checker.check import LISTED, check
from spmilp.plan.plan import Claim, Placement, Plan
from spmilp.problem.objective import Objective, Quantity


def _claiming(**numbers: int) -> Plan:
    return replace(PLAN, claim=replace(PLAN.claim, **numbers))


@pytest.mark.parametrize(
    ("quantity", "value"),
    [("makespan", 196), ("dram_traffic", 288), ("energy", 38248), ("peak_spm", 320)],
)
@pytest.mark.parametrize("error", [-1, 1])
def test_a_stated_quantity_is_the_plans(quantity: str, value: int, error: int) -> None:
    assert broken(_claiming(**{quantity: value + error})) == {
        "claims": [f"plan states {quantity} {value + error}, but it is {value}"]
    }


def test_the_bound_is_not_above_the_objective() -> None:
    assert broken(_claiming(bound=196)) == {}
    assert broken(_claiming(bound=197)) == {
        "claims": ["plan states the bound 197 > 196, its makespan"]
    }


def test_the_bound_is_one_of_the_problems_objective() -> None:
    problem = replace(PROBLEM, objective=Objective.of(Quantity.DRAM_TRAFFIC))
    assert broken(_claiming(bound=289), problem) == {
        "claims": ["plan states the bound 289 > 288, its dram_traffic"]
    }


def _more_placements(*tasks: int) -> list[Placement]:
    return [replace(PLAN.placements[0], task=task) for task in tasks]


STRUCTURE: list[tuple[Plan, str]] = [
    (replace(PLAN, placements=PLAN.placements[:4]), "plan: 4 placements for 5 tasks"),
    (
        replace(PLAN, placements=(*PLAN.placements, PLAN.placements[0])),
        "placement 5: is of task 0, expected task 5",
    ),
    (
        replace(PLAN, placements=(*PLAN.placements, *_more_placements(5, 6))),
        "plan: 7 placements for 5 tasks",
    ),
    (changed(placements={1: {"task": 0}}), "placement 1: is of task 0, expected task 1"),
    (changed(placements={0: {"task": 1}}), "placement 0: is of task 1, expected task 0"),
    (changed(placements={1: {"core": 4}}), "placement 1: refers to core 4, but there are 3"),
    (changed(placements={1: {"end": 60}}), "placement 1: cycles [69, 60) are empty or negative"),
    (
        changed(placements={1: {"reads": (8, 8)}}),
        "placement 1: 2 residencies for 1 reads of task add",
    ),
    (
        changed(placements={1: {"writes": ()}}),
        "placement 1: 0 residencies for 1 writes of task add",
    ),
    (changed(residencies={4: {"index": 3}}), "residency 4: has index 3, expected 4"),
    (changed(residencies={4: {"offset": -1}}), "residency 4: offset -1 B < 0 B"),
    (changed(residencies={4: {"bytes": -1}}), "residency 4: size -1 B, expected > 0 B"),
    (changed(residencies={4: {"slice": -1}}), "residency 4: refers to slice -1, but there are 10"),
    (changed(transfers={2: {"index": 1}}), "transfer 2: has index 1, expected 2"),
    (changed(transfers={2: {"route": (0, -1)}}), "transfer 2: refers to link -1, but there are 8"),
    (replace(PLAN, tensors=(0, 128, 256)), "plan: 3 tensor addresses for 2 tensors"),
    (replace(PLAN, tensors=(0, -1)), "tensor 1: address -1 < 0"),
    (changed(placements={1: {"core": 3}}), "placement 1: refers to core 3, but there are 3"),
    (changed(placements={1: {"core": -1}}), "placement 1: refers to core -1, but there are 3"),
    (changed(placements={1: {"end": 69}}), "placement 1: cycles [69, 69) are empty or negative"),
    (changed(placements={1: {"start": -1}}), "placement 1: cycles [-1, 79) are empty or negative"),
    (
        changed(placements={1: {"reads": ()}}),
        "placement 1: 0 residencies for 1 reads of task add",
    ),
    (
        changed(placements={1: {"writes": (10, 11)}}),
        "placement 1: 2 residencies for 1 writes of task add",
    ),
    (
        changed(placements={1: {"reads": (23,)}}),
        "placement 1: refers to residency 23, but there are 23",
    ),
    (
        changed(placements={1: {"scratch": 23}}),
        "placement 1: refers to residency 23, but there are 23",
    ),
    (changed(residencies={4: {"index": 5}}), "residency 4: has index 5, expected 4"),
    (changed(residencies={4: {"slice": 10}}), "residency 4: refers to slice 10, but there are 10"),
    (changed(residencies={4: {"memory": 4}}), "residency 4: refers to memory 4, but there are 4"),
    (changed(residencies={4: {"offset": -64}}), "residency 4: offset -64 B < 0 B"),
    (changed(residencies={4: {"bytes": 0}}), "residency 4: size 0 B, expected > 0 B"),
    (changed(residencies={4: {"end": 0}}), "residency 4: cycles [0, 0) are empty or negative"),
    (
        changed(residencies={4: {"filled_by_task": 5}}),
        "residency 4: refers to task 5, but there are 5",
    ),
    (
        changed(residencies={4: {"filled_by_transfer": 13}}),
        "residency 4: refers to transfer 13, but there are 13",
    ),
    (
        changed(residencies={5: {"filled_by_task": 0}}),
        "residency 5: filled by task 0 and by transfer 2, expected one at most",
    ),
    (changed(transfers={2: {"index": 3}}), "transfer 2: has index 3, expected 2"),
    (changed(transfers={2: {"slice": -1}}), "transfer 2: refers to slice -1, but there are 10"),
    (
        changed(transfers={2: {"source": 99}}),
        "transfer 2: refers to residency 99, but there are 23",
    ),
    (
        changed(transfers={2: {"destinations": ()}}),
        "transfer 2: has 0 destinations, expected 1 or more",
    ),
    (
        changed(transfers={2: {"destinations": (5, -2)}}),
        "transfer 2: refers to residency -2, but there are 23",
    ),
    (changed(transfers={2: {"engine": 3}}), "transfer 2: refers to engine 3, but there are 3"),
    (changed(transfers={2: {"route": (8,)}}), "transfer 2: refers to link 8, but there are 8"),
    (changed(transfers={2: {"end": 14}}), "transfer 2: cycles [14, 14) are empty or negative"),
    (replace(PLAN, tensors=(0,)), "plan: 1 tensor addresses for 2 tensors"),
    (replace(PLAN, tensors=(0, -128)), "tensor 1: address -128 < 0"),
]


@pytest.mark.parametrize(("plan", "message"), STRUCTURE, ids=[m for _, m in STRUCTURE])
def test_references_lead_somewhere(plan: Plan, message: str) -> None:
    found = broken(plan)
    assert found.keys() == {"structure"}
    assert message in found["structure"]


def test_long_lists_of_violations_are_cut_and_counted() -> None:
    residencies = tuple(replace(residency, index=0) for residency in PLAN.residencies)
    found = check(PROBLEM, replace(PLAN, residencies=residencies))
    assert len(found) == LISTED + 1
    assert found[-1].message == "and 2 more violations of structure"


def test_an_empty_plan_of_a_problem_without_tasks_is_valid() -> None:
    empty: dict[str, Any] = {"tensors": (), "buffers": (), "slices": (), "tasks": ()}
    claim = Claim(
        makespan=0, dram_traffic=0, energy=0, peak_spm=0, bound=0, bound_source="nothing to do"
    )
    plan = Plan(placements=(), claim=claim, solver="none")
    assert broken(plan, replace(PROBLEM, **empty)) == {}


def test_the_worked_example_is_valid() -> None:
    assert broken(PLAN, PROBLEM) == {}
