"""The timeline shows what each core and channel does."""

from dataclasses import replace

from spmilp.explaining.chain import AnalysedPlan
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import timeline


def test_operators_and_transfers_have_legends_of_their_own(problem: Problem, plan: Plan) -> None:
    legends = timeline([("", AnalysedPlan(problem=problem, plan=plan))]).legends
    named = {
        legend.get_title().get_text(): [text.get_text() for text in legend.get_texts()]
        for legend in legends
    }
    assert named == {
        "transfers": ["loading from DRAM", "storing to DRAM", "moving data on chip"],
        "operators": ["conv", "relu"],
    }


def test_several_plans_have_one_axis_of_cycles_and_their_labels(
    problem: Problem, plan: Plan
) -> None:
    longer = replace(plan, claim=replace(plan.claim, makespan=90))
    shown = [
        ("one", AnalysedPlan(problem=problem, plan=plan)),
        ("$two$", AnalysedPlan(problem=problem, plan=longer)),
    ]
    axes = timeline(shown).axes
    assert [axis.get_xlim() for axis in axes] == [(0, 90)] * 2
    assert [axis.get_title(loc="left") for axis in axes] == [
        "one: 72 cycles",
        r"\$two\$: 90 cycles",
    ]


def test_the_critical_chain_is_framed(problem: Problem, plan: Plan) -> None:
    subject = AnalysedPlan(problem=problem, plan=plan)
    (axis,) = timeline([("", subject)], chain=True).axes
    frames = axis.collections[-1]
    assert len(frames.get_paths()) == 5
    assert frames.get_facecolor().size == 0
