"""The memory map shows what lies where."""

import sys

import pytest

from spmilp.errors import MissingExtraError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import memory_map


def test_every_residency_is_a_rectangle_of_time_by_address(problem: Problem, plan: Plan) -> None:
    from matplotlib.collections import PolyCollection

    axes = memory_map(problem, plan).axes
    assert [axis.get_title(loc="left") for axis in axes] == [
        "spm0: peak 96 B of 256 B, 37.5%",
        "spm1: peak 192 B of 256 B, 75.0%",
    ]
    (rectangles,) = (each for each in axes[1].collections if isinstance(each, PolyCollection))
    boxes = [path.get_extents().extents.tolist() for path in rectangles.get_paths()]
    assert boxes == [[30, 128, 60, 192], [40, 128, 72, 192]]


@pytest.mark.parametrize("name", ["spm7", "dram"])
def test_a_memory_that_is_not_on_the_chip_is_an_error(
    problem: Problem, plan: Plan, name: str
) -> None:
    with pytest.raises(ValueError, match=f"no on-chip memory {name}; the machine has spm0, spm1"):
        memory_map(problem, plan, [name])


def test_without_matplotlib_the_message_says_what_to_install(
    problem: Problem, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'spmilp\[plot\]'"):
        memory_map(problem, plan)
