"""Subjects of the tests: the worked example of the checker, and plans of networks."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from checker.worked_example import PLAN, PROBLEM
from spmilp.checker.values.replay import replay
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.lowering.lower import lower
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from values.sequential import MACHINE, sequential_plan
from values.small_network import NETWORK, script_of_two_strips, some_inputs, two_strips
from values.test_lowered_networks import cut

MODELS = Path(__file__).parents[2] / "models"

HOSTILE = (
    "*/ int x; /*",
    '#include "/etc/passwd"',
    'quote " and \\ backslash \\',
    "line\nbreak\r\n#define A B",
    "trigraph ??/ ??' ??=",
    "int",
    "../../../escape",
    "größe_名前_\U0001f600",
    "a \x00 zero",
    "a-b",
    "a.b",
    "a b",
    "x" * 10_000,
    "",
    "=1+2",
    "%s%n | `cell` <b>",
)
"""Names that a model may have; several are equal once only letters and digits are kept."""


def subject(problem: Problem = PROBLEM, plan: Plan = PLAN, **more: Any) -> Subject:
    """Return what an export is given, without a model."""
    return Subject(problem=problem, plan=plan, **more)


def with_hostile_names(given: Subject | None = None) -> Subject:
    """Return a plan with the names of everything replaced, but of tensors that a network names."""
    given = given or subject()
    problem, machine = given.problem, given.problem.machine
    names = cycle(HOSTILE)

    def renamed(things: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(replace(each, name=next(names)) for each in things)

    nodes = {each.name: f"{each.index}{next(names)}" for each in machine.memories}
    machine = replace(
        machine,
        name=next(names),
        memories=tuple(replace(each, name=nodes[each.name]) for each in machine.memories),
        links=tuple(
            replace(e, source=nodes.get(e.source, e.source), target=nodes.get(e.target, e.target))
            for e in machine.links
        ),
        cores=tuple(replace(each, name=f"{each.index}{next(names)}") for each in machine.cores),
        engines=tuple(replace(each, name=f"{each.index}{next(names)}") for each in machine.engines),
    )
    problem = replace(
        problem,
        name=next(names),
        machine=machine,
        tensors=problem.tensors if given.network else renamed(problem.tensors),
        buffers=renamed(problem.buffers),
        tasks=renamed(problem.tasks),
    )
    return replace(given, problem=problem)


def two_strips_subject(in_place: bool = True) -> tuple[Subject, dict[str, np.ndarray]]:
    """Return a small float network in two strips with halos, and its inputs."""
    problem = two_strips()
    plan = script_of_two_strips(problem, in_place).plan()
    return subject(problem, plan, network=NETWORK), some_inputs()


@cache
def lowered(model: str, pieces: int, parts: int) -> Subject:
    """Return a model cut into tiles with a plan for one core."""
    network: Network = load_network(MODELS / f"{model}.onnx")
    problem = lower(network, MACHINE, cut(network, pieces, parts))
    return subject(problem, sequential_plan(problem), network=network)


def replayed(given: Subject, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what the value replay computes."""
    assert given.network is not None
    return replay(given.problem, given.plan, given.network, inputs)
