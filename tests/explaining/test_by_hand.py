"""The analysis of a plan small enough to be worked out by hand; see ``report.duo``."""

from dataclasses import replace

from report.duo import duo_plan, duo_problem
from spmilp.explaining.chain import AnalysedPlan, Binding, Holder, Reason, times_of_cores
from spmilp.explaining.usage import Beyond, excess_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import BufferKind


def duo() -> AnalysedPlan:
    return AnalysedPlan(problem=duo_problem(), plan=duo_plan())


def test_idle_cycles_have_the_name_of_what_holds_the_next_task_up() -> None:
    left, right = times_of_cores(duo())
    unused, engine = Binding(Holder.NOTHING, 0, Reason.UNUSED), (Holder.ENGINE, 0)
    load, done = Binding(*engine, Reason.RATE), Binding(Holder.NOTHING, 0, Reason.DONE)
    assert left.idle == ((0, 2, unused), (2, 10, load), (30, 72, done))
    assert right.idle == (
        (0, 2, unused),
        (2, 10, load),
        (10, 30, Binding(Holder.CORE, 0, Reason.WRITER)),
        (30, 40, load),
        (60, 72, done),
    )


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
