"""The plan by hand."""

import pytest

from report.duo import duo_plan, duo_problem
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


@pytest.fixture
def problem() -> Problem:
    return duo_problem()


@pytest.fixture
def plan() -> Plan:
    return duo_plan()
