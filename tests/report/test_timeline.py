"""The timeline shows what each core and channel does."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from report.duo import duo_problem
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem, Task, Tile
from spmilp.report.palette import HATCHES, OPERATOR_COLOURS
from spmilp.report.plots.timeline import Shown, rows_of_channels, rows_of_cores, timeline


def test_a_row_holds_the_tasks_of_a_core_by_operator(problem: Problem, plan: Plan) -> None:
    assert rows_of_cores(problem, plan) == {
        "left": [(10, 30, "conv")],
        "right": [(40, 60, "relu")],
    }


def test_a_row_holds_the_transfers_of_a_channel_by_direction(problem: Problem, plan: Plan) -> None:
    assert rows_of_channels(problem, plan) == {
        "dma:0": [(2, 10, "load"), (60, 72, "store")],
        "dma:1": [(30, 40, "move")],
    }


def test_cores_and_channels_are_drawn_above_one_another(problem: Problem, plan: Plan) -> None:
    axes = timeline([Shown(problem=problem, plan=plan)]).axes

    assert [axis.get_ylabel() for axis in axes] == ["core", "DMA channel"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["left", "right"]
    assert axes[1].get_xlim() == (0, 72)
    assert [len(axis.collections) for axis in axes] == [2, 3]


def test_operators_and_transfers_have_legends_of_their_own(problem: Problem, plan: Plan) -> None:
    legends = timeline([Shown(problem=problem, plan=plan)]).legends
    named = {
        legend.get_title().get_text(): [text.get_text() for text in legend.get_texts()]
        for legend in legends
    }
    assert named == {
        "transfers": ["loading from DRAM", "storing to DRAM", "moving data on chip"],
        "operators": ["conv", "relu"],
    }


def test_a_plan_without_transfers_has_only_cores(problem: Problem, plan: Plan) -> None:
    still = replace(plan, transfers=())
    assert len(timeline([Shown(problem=problem, plan=still)]).axes) == 1


def test_several_plans_have_one_axis_of_cycles_and_their_labels(
    problem: Problem, plan: Plan
) -> None:
    longer = replace(plan, claim=replace(plan.claim, makespan=90))
    shown = [
        Shown(problem=problem, plan=plan, label="one"),
        Shown(problem=problem, plan=longer, label="$two$"),
    ]
    axes = timeline(shown).axes
    assert [axis.get_xlim() for axis in axes] == [(0, 90)] * 4
    assert [axis.get_title(loc="left") for axis in axes] == [
        "one: 72 cycles",
        "",
        r"\$two\$: 90 cycles",
        "",
    ]


def test_the_critical_chain_is_framed(problem: Problem, plan: Plan) -> None:
    axes = timeline([Shown(problem=problem, plan=plan, chain=True)]).axes
    frames = [axis.collections[-1] for axis in axes]
    assert [len(frame.get_paths()) for frame in frames] == [2, 3]
    assert all(frame.get_facecolor().size == 0 for frame in frames)


@pytest.mark.parametrize("operators", [9, 30])
def test_operators_differ_by_colour_or_hatching(plan: Plan, operators: int) -> None:
    problem = duo_problem()
    tasks = tuple(
        Task(index=number, name=f"t{number}", cycles=(1,), tile=Tile(of=f"op{number}", box=()))
        for number in range(operators)
    )
    many = replace(problem, buffers=(), slices=(), tensors=(), tasks=tasks)
    placements = tuple(
        replace(plan.placements[0], task=number, start=number, end=number + 1, reads=(), writes=())
        for number in range(operators)
    )
    busy = replace(plan, placements=placements, residencies=(), transfers=(), tensors=())
    (legend,) = timeline([Shown(problem=many, plan=busy)]).legends
    looks = {(to_hex(patch.get_facecolor()), patch.get_hatch()) for patch in legend.get_patches()}
    assert len(looks) == min(operators, len(HATCHES) * len(OPERATOR_COLOURS))
