"""What binds a plan, on plans that are slowed in known ways, and that its steps fill it."""

from itertools import pairwise

from analysis.plans import SIZES, analysed
from analysis.slowed import Made, independent_tasks, listed
from report.duo import duo_plan, duo_problem
from spmilp.analysis.analyse import analyse
from spmilp.analysis.binding import Binding, Holder, Reason, cycles_by_binding, steps_of
from spmilp.problem.problem import Problem


def most_binding(problem: Problem) -> Binding:
    """Return what takes most of the makespan of the list scheduler's plan."""
    result = listed(problem)
    assert result.plan is not None
    assert result.makespan is not None
    analysis = analyse(problem, result.plan)
    steps = steps_of(analysis.subject, analysis.chain)
    found = cycles_by_binding(steps, 0, result.makespan)
    assert sum(cycles for _, cycles in found) == result.makespan
    return found[0][0]


def test_steps_of_a_plan_by_hand() -> None:
    analysis = analyse(duo_problem(), duo_plan())
    steps = steps_of(analysis.subject, analysis.chain)
    assert [(step.start, step.end, step.binding.reason) for step in steps] == [
        (0, 2, Reason.UNUSED),
        (2, 10, Reason.RATE),
        (10, 30, Reason.WRITER),
        (30, 40, Reason.RATE),
        (40, 60, Reason.WRITER),
        (60, 72, Reason.RATE),
    ]
    # Nothing but the engine is between memories without links.
    assert {step.binding.holder for step in steps if step.binding.reason is Reason.RATE} == {
        Holder.ENGINE
    }


def test_steps_fill_the_makespan_of_larger_plans_without_gaps() -> None:
    for size in SIZES:
        analysis = analysed(*size)
        steps = steps_of(analysis.subject, analysis.chain)
        assert steps[0].start == 0
        assert steps[-1].end == max(analysis.subject.ends)
        assert all(one.end == other.start for one, other in pairwise(steps))
        assert all(step.start < step.end for step in steps)


def test_long_tasks_are_bound_by_their_cores() -> None:
    found = most_binding(independent_tasks(Made(), cycles=5000, read=64))
    assert (found.holder, found.reason) == (Holder.CORE, Reason.BUSY)


def test_a_reserved_core_leaves_all_work_to_the_other_which_is_named() -> None:
    problem = independent_tasks(Made(reserved=(0, 16376)), cycles=5000, read=64)
    assert most_binding(problem) == Binding(Holder.CORE, 0, Reason.BUSY)


def test_a_slow_link_is_named_though_transfers_wait_for_a_channel() -> None:
    problem = independent_tasks(Made(dram_rate=2, channels=1), cycles=10, read=4096)
    assert problem.machine.links[0].source == "dram"
    found = most_binding(problem)
    assert (found.holder, found.index) == (Holder.LINK, 0)


def test_a_removed_channel_is_named() -> None:
    # Two channels of 4 B/cycle keep up with what one core computes; one does not.
    made = {"engine_rate": 4, "reserved": (0, 16376)}
    removed = independent_tasks(Made(channels=1, **made), cycles=500, read=3072)
    assert most_binding(removed) == Binding(Holder.ENGINE, 0, Reason.CHANNELS)
    there = independent_tasks(Made(channels=2, **made), cycles=500, read=3072)
    assert most_binding(there) == Binding(Holder.CORE, 0, Reason.BUSY)


def test_a_small_scratchpad_is_named_for_want_of_room() -> None:
    # One operand and its result fit beside each other, a second operand does not.
    problem = independent_tasks(Made(spm=3200), cycles=700, read=3072)
    found = most_binding(problem)
    assert (found.holder, found.reason) == (Holder.MEMORY, Reason.ROOM)
