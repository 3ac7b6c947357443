"""What figures show of the plan by hand, and that the same one has the same bytes."""

from dataclasses import replace
from pathlib import Path

from spmilp.explaining.chain import AnalysedPlan
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import memory_map, timeline, write_figure


def test_every_residency_is_a_rectangle_of_time_by_address(
    problem: Problem, plan: Plan, tmp_path: Path
) -> None:
    from matplotlib.collections import PolyCollection

    axes = memory_map(problem, plan).axes
    assert axes[1].get_title(loc="left") == "spm1: peak 192 B of 256 B, 75.0%"
    (rectangles,) = (each for each in axes[1].collections if isinstance(each, PolyCollection))
    boxes = [path.get_extents().extents.tolist() for path in rectangles.get_paths()]
    assert boxes == [[30, 128, 60, 192], [40, 128, 72, 192]]
    files = (write_figure(memory_map(problem, plan), tmp_path / f"{n}.svg") for n in range(2))
    assert len({file.read_bytes() for file in files}) == 1


def test_several_plans_have_one_axis_of_cycles_and_the_chain_is_framed(
    problem: Problem, plan: Plan
) -> None:
    longer = replace(plan, claim=replace(plan.claim, makespan=90))
    subjects = [AnalysedPlan(problem=problem, plan=one) for one in (plan, longer)]
    axes = timeline(list(zip(("one", "$two$"), subjects, strict=True))).axes
    assert [axis.get_xlim() for axis in axes] == [(0, 90)] * 2
    assert axes[1].get_title(loc="left") == r"\$two\$: 90 cycles"
    (axis,) = timeline([("", subjects[0])], chain=True).axes
    assert len(axis.collections[-1].get_paths()) == 5
