"""Every published policy on one network: accepted plans, right numbers, or a reason."""

from pathlib import Path

import pytest

from benchmarks.bench.suite import ModelOnMachine
from benchmarks.published.policies import outcome, published_policies
from spmilp.pipeline import problem_of
from spmilp.policies.cdm import Cdm
from spmilp.policies.onsram import OnSram
from spmilp.policies.rammer import Rammer
from spmilp.policies.set import Set
from spmilp.policies.stream import Stream
from spmilp.policies.toplib import TopLib
from spmilp.policies.tvm import Tvm
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Work
from spmilp.solvers.common.solver import Solver
from tests.policies.small_instances import (
    REFUSED,
    SMALL,
    assert_plans_or_refusals,
)

pytestmark = pytest.mark.full

POLICIES: tuple[Solver, ...] = (
    *(OnSram(), TopLib(), Cdm(), Tvm(), Tvm(hides=False)),
    *(Rammer(), Set(steps=20), Stream(generations=1)),
)
TOO_TIGHT = dict.fromkeys(
    (
        "residual-24t-4c-mesh2x2-verytight-balanced",
        "residual-8t-2c-crossbar-verytight-balanced",
        "resnet8-12t-1c-verytight-balanced-dramtraffic",
    ),
    "use smaller tiles",
)
"""Where a task has no room beside its results unless these take the place of an operand."""


def refused_by(name: str) -> dict[str, str]:
    """Return the instances that a policy does not take, with what it says."""
    if name in ("rammer", "set", "stream"):
        return {}
    return REFUSED | TOO_TIGHT if name in ("cdm", "tvm", "tvm:serial") else REFUSED


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_plan_passes_the_checker_and_a_refusal_has_name_and_number(policy: Solver) -> None:
    assert_plans_or_refusals(policy, SMALL, refused_by(policy.name))


MODEL = str(Path(__file__).parents[2] / "models" / "autoencoder_int8.onnx")
WORK, WORK_OF_AUTO = 1.0, 4.0
"""Seconds of work for each policy, and for ``auto``: counted, the same on every computer."""


def test_plans_are_right_or_have_a_reason_and_auto_is_as_good_as_each() -> None:
    """All in one test: processes side by side would each make all plans again."""
    problem = problem_of(MODEL, "mesh4x4")
    source = ModelOnMachine(model=MODEL, machine="mesh4x4")
    found = find_solver("auto").solve(problem, SolveOptions(time_limit=WORK_OF_AUTO, pace=Work()))
    assert found.plan is not None
    best, values = found.plan.claim.makespan, []
    for name in published_policies():
        made = outcome(name, problem, WORK, Work(), source)
        assert made.violations == 0, name
        if made.value is None:
            assert any(map(str.isdigit, made.reason)), (name, made.reason)
        else:
            assert made.is_right, name
            assert best <= made.value, name
            values.append(made.value)
    assert len(values) >= 8
