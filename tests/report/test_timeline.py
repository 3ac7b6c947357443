"""The timeline shows what each core and channel does."""

from dataclasses import replace

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import BLUE, GROUP_COLOURS, ORANGE, SKY_BLUE
from spmilp.report.timeline import rows_of_channels, rows_of_cores, timeline


def test_a_row_holds_the_tasks_of_a_core_coloured_by_operator(problem: Problem, plan: Plan) -> None:
    assert rows_of_cores(problem, plan) == {
        "left": [(10, 20, GROUP_COLOURS[0])],
        "right": [(40, 20, GROUP_COLOURS[1])],
    }


def test_a_row_holds_the_transfers_of_a_channel_coloured_by_direction(
    problem: Problem, plan: Plan
) -> None:
    assert rows_of_channels(problem, plan) == {
        "dma:0": [(2, 8, ORANGE), (60, 12, BLUE)],
        "dma:1": [(30, 10, SKY_BLUE)],
    }


def test_cores_and_channels_are_drawn_above_one_another(problem: Problem, plan: Plan) -> None:
    axes = timeline(problem, plan).axes

    assert [axis.get_ylabel() for axis in axes] == ["core", "DMA channel"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["left", "right"]
    assert axes[1].get_xlim() == (0, 72)
    assert [len(axis.collections) for axis in axes] == [2, 2]


def test_the_legend_names_the_directions(problem: Problem, plan: Plan) -> None:
    (legend,) = timeline(problem, plan).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["load from DRAM", "store to DRAM", "move on chip"]


def test_a_plan_without_transfers_has_only_cores(problem: Problem, plan: Plan) -> None:
    still = replace(plan, transfers=())
    assert len(timeline(problem, still).axes) == 1
