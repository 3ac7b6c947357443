"""What figures show of the plan by hand and of a search, whose log keeps what is better."""

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

from report.duo import duo_problem
from spmilp.explaining.chain import AnalysedPlan
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import gap_over_time, memory_map, timeline, write_figure
from spmilp.report.search_log import LogEntry, SearchLog, read_log


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


def logged() -> tuple[LogEntry, ...]:
    seconds = count(1)
    log = SearchLog(lambda: float(next(seconds)))
    for source, incumbent, bound in (
        ("first", None, 0),
        ("tiles", 100, None),
        ("hint", 110, 0),
        ("work", None, 60),
        ("lns", 90, 50),
        ("cpsat", 90, 60),
        ("cpsat", 90, 90),
    ):
        log.note(source, incumbent, bound)
    return log.entries


def test_only_what_is_better_is_kept_with_the_best_of_both() -> None:
    assert [(each.source, each.incumbent, each.bound, each.gap) for each in logged()] == [
        ("tiles", 100, None, None),
        ("work", 100, 60, 0.4),
        ("lns", 90, 60, 1 / 3),
        ("cpsat", 90, 90, 0.0),
    ]


def test_lines_of_json_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    lines = [json.dumps(entry.as_fields()) for entry in logged()]
    file.write_text("\n".join([*lines, '{"event": "end", "status": "optimal"}\n']))
    assert read_log(file) == logged()


def test_the_figure_shows_incumbent_and_bound() -> None:
    (axis,) = gap_over_time(duo_problem(), logged()).axes
    lines = {str(line.get_label()): line.get_xydata().tolist() for line in axis.lines}
    assert lines["incumbent"] == [[1, 100], [2, 100], [3, 90], [4, 90]]
    assert lines["bound"][1:] == [[2, 60], [3, 60], [4, 90]]
    assert axis.get_ylabel() == "cycles"
