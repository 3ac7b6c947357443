"""What a little more of what binds a plan saves, on plans that are slowed in known ways."""

from typing import Any

import pytest

import spmilp
from explaining.slowed import Made, independent_tasks, listed
from spmilp.problem.problem import Problem

pytestmark = pytest.mark.full


def asked(problem: Problem) -> Any:
    said = spmilp.explain(listed(problem), what_if="2s")
    assert "What a little more saves (2 s of search each, all from this plan)" in said.text
    assert max(map(len, said.text.splitlines())) <= 80
    return said.data["what_if"]


def test_a_channel_that_was_removed_is_worth_what_it_saves() -> None:
    made = {"engine_rate": 4, "reserved": (0, 16376)}
    found = asked(independent_tasks(Made(channels=1, **made), cycles=500, read=3072, tasks=4))
    (channel,) = (each for each in found["changes"] if each["change"].startswith("1 channel more"))
    # Four loads of 768 cycles one after another; with two channels the tasks are what takes long.
    assert found["unchanged"] >= 4 * 768
    assert channel["makespan"] == found["unchanged"] - channel["saved"]
    assert channel["saved"] >= 300
