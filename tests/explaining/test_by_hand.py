"""The analysis of a plan small enough to be worked out by hand; see ``report.duo``."""

from dataclasses import replace

from report.duo import duo_plan, duo_problem
from spmilp.explaining.chain import AnalysedPlan, Wait
from spmilp.explaining.slow import Analysis, analyse
from spmilp.explaining.usage import Beyond, Idle, excess_of
from spmilp.plan.plan import Placement, Plan
from spmilp.problem.problem import BufferKind

LOAD, MOVE, STORE = 2, 3, 4
"""Numbers of the transfers as activities, behind the two tasks."""


def duo() -> Analysis:
    return analyse(duo_problem(), duo_plan())


def test_the_chain_goes_back_from_the_store_to_the_first_load() -> None:
    links = duo().chain.links
    assert [link.activity for link in links] == [LOAD, 0, MOVE, 1, STORE]
    assert [link.cause and link.cause.wait for link in links] == [
        None,
        Wait.ARRIVAL,
        Wait.WRITER,
        Wait.ARRIVAL,
        Wait.WRITER,
    ]
    assert [link.unused for link in links] == [2, 0, 0, 0, 0]


def test_idle_cycles_have_the_name_of_what_was_waited_for() -> None:
    left, right = duo().cores
    assert [(span.start, span.end, span.idle) for span in left.spans] == [
        (0, 2, Idle.UNUSED),
        (2, 10, Idle.LOAD),
        (30, 72, Idle.DONE),
    ]
    assert [(span.start, span.end, span.idle) for span in right.spans] == [
        (0, 2, Idle.UNUSED),
        (2, 10, Idle.LOAD),
        (10, 30, Idle.WRITER),
        (30, 40, Idle.MOVE),
        (60, 72, Idle.DONE),
    ]


def test_a_task_whose_core_ran_another_one_first_is_waited_for_because_of_the_order() -> None:
    problem, plan = duo_problem(), duo_plan()
    third = replace(problem.tasks[0], index=2, name="third", reads=(), writes=(), cycles=(5,))
    first = Placement(task=2, core=0, start=5, end=10, reads=(), writes=())
    analysis = analyse(
        replace(problem, tasks=(*problem.tasks, third)),
        replace(plan, placements=(*plan.placements, first)),
    )
    assert [(span.start, span.end, span.idle) for span in analysis.cores[1].spans] == [
        (0, 5, Idle.UNUSED),
        (5, 10, Idle.ORDER),
        (10, 30, Idle.WRITER),
        (30, 40, Idle.MOVE),
        (60, 72, Idle.DONE),
    ]


def moved(plan: Plan, part: int, source: int, memory: int, start: int) -> Plan:
    """Return a plan with one more transfer of a slice for 2 cycles, into a residency of its own."""
    filled, number = len(plan.residencies), len(plan.transfers)
    move = replace(plan.transfers[0], index=number, slice=part, source=source)
    return replace(
        plan,
        transfers=(
            *plan.transfers,
            replace(move, destinations=(filled,), start=start, end=start + 2),
        ),
        residencies=(
            *plan.residencies,
            replace(
                plan.residencies[1],
                index=filled,
                slice=part,
                memory=memory,
                start=start,
                filled_by_transfer=number,
            ),
        ),
    )


def test_bytes_beyond_the_compulsory_ones_are_told_by_what_they_are_moved_for() -> None:
    dram, left, right = 0, 1, 2
    plan = moved(duo_plan(), part=0, source=0, memory=left, start=20)
    plan = moved(plan, part=0, source=0, memory=right, start=30)
    plan = moved(plan, part=1, source=2, memory=dram, start=32)
    plan = moved(plan, part=1, source=8, memory=right, start=36)
    plan = moved(plan, part=1, source=3, memory=dram, start=44)
    rows = excess_of(AnalysedPlan(problem=duo_problem(), plan=plan))
    assert [(row.kind, row.data, row.operator, row.bytes) for row in rows] == [
        (Beyond.SPILL, BufferKind.INTERMEDIATE, "", 64),
        (Beyond.SPILL, BufferKind.INTERMEDIATE, "conv", 64),
        (Beyond.STORE, BufferKind.INTERMEDIATE, "conv", 64),
        (Beyond.COPY, BufferKind.INPUT, "", 32),
        (Beyond.RELOAD, BufferKind.INPUT, "", 32),
    ]


def test_a_pair_in_place_is_named_and_its_bytes_are_live_once() -> None:
    analysis = duo()
    assert analysis.in_place == ((3, 4),)
    right = analysis.spaces[1]
    assert dict(zip(right.cycles, right.live, strict=True)) == {30: 64, 40: 64, 60: 64, 72: 0}
    assert dict(zip(right.cycles, right.tops, strict=True)) == {30: 192, 40: 192, 60: 192, 72: 0}
    assert (right.peak, right.peak_at, right.live_peak) == (192, 30, 64)


def test_traffic_is_told_by_tensor_beside_what_is_compulsory() -> None:
    rows = [(row.tensor, row.kind, row.loaded, row.stored, row.compulsory) for row in duo().traffic]
    assert rows == [
        ("y", BufferKind.OUTPUT, 0, 64, 64),
        ("x", BufferKind.INPUT, 32, 0, 32),
    ]


def test_an_empty_plan_has_an_empty_analysis() -> None:
    problem = replace(duo_problem(), tensors=(), buffers=(), slices=(), tasks=())
    empty = Plan(placements=(), claim=replace(duo_plan().claim, makespan=0), solver="none")
    analysis = analyse(problem, empty)
    assert (analysis.chain.links, analysis.phases, analysis.causes) == ((), (), ())
    assert analysis.excess == ()
