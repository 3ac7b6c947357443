"""The second checker's opinion of plans that tests let the checker judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from docs import checker as second
from spmilp.checker import check as checking
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Plan
from spmilp.plan.write import plan_text
from spmilp.problem.problem import Problem
from spmilp.problem.write import problem_text
from tests.checker.mutations.verdicts import of_second

SMALL = 40
"""Residencies and links of plans and machines that are compared: larger ones take too long."""
FEW = 3
"""Plans of one test that are compared."""


@contextmanager
def second_opinion() -> Iterator[None]:
    """Ask the second checker about the first small plans that are checked meanwhile."""
    asked: dict[int, tuple[Problem, Plan]] = {}
    structure = checking.structure

    def noted(problem: Problem, plan: Plan) -> Iterator[Violation]:
        sizes = len(plan.residencies), len(plan.transfers), len(problem.machine.links)
        if len(asked) < FEW and max(sizes) <= SMALL:
            asked[id(plan)] = problem, plan
        return structure(problem, plan)

    with mock.patch.object(checking, "structure", noted):
        yield
    for problem, plan in asked.values():
        assert_agreement(problem, plan)


def assert_agreement(problem: Problem, plan: Plan) -> None:
    """Compare what both checkers say, if a file can hold the plan."""
    try:
        files = problem_text(problem).encode(), plan_text(plan, problem).encode()
    except ValueError:
        return
    expected = frozenset(violation.rule for violation in checking.check(problem, plan))
    assert of_second(second.read_problem(files[0]), files[1]) == expected
