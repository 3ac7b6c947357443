"""What is said of plans of hundreds of transfers is looked up again, cycle by cycle."""

from collections import Counter
from fractions import Fraction

import pytest

from explaining.plans import SIZES, analysed
from spmilp.explaining.chain import AnalysedPlan, Cause, Wait
from spmilp.explaining.slow import Analysis
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Transfer

pytestmark = pytest.mark.parametrize(("tasks", "cores"), SIZES)


def all_causes(analysis: Analysis) -> list[tuple[int, Cause]]:
    return [(number, cause) for number, causes in enumerate(analysis.causes) for cause in causes]


def transfers_at(subject: AnalysedPlan, cycle: int) -> list[Transfer]:
    return [move for move in subject.plan.transfers if move.start <= cycle < move.end]


def test_the_named_core_channels_and_links_were_busy(tasks: int, cores: int) -> None:
    subject = analysed(tasks, cores).subject
    machine, placements = subject.problem.machine, subject.plan.placements
    seen = Counter[Wait]()
    for activity, cause in all_causes(analysed(tasks, cores)):
        seen[cause.wait] += 1
        move = subject.transfer(activity)
        if cause.wait is Wait.CORE:
            assert placements[activity].core == placements[cause.activity].core
        elif cause.wait is Wait.CHANNEL:
            assert move is not None
            busy = [
                each
                for each in transfers_at(subject, cause.until - 1)
                if each.engine == move.engine
            ]
            assert len(busy) == machine.engines[move.engine].channels
        elif cause.wait is Wait.LINK:
            assert move is not None
            assert cause.link in move.route
            link = machine.links[cause.link or 0]
            taken = sum(
                (
                    rate_of(subject, each)
                    for each in transfers_at(subject, cause.until - 1)
                    if cause.link in each.route
                ),
                Fraction(0),
            )
            assert taken + rate_of(subject, move) > link.rate
    assert min(seen[Wait.CORE], seen[Wait.LINK]) > 0


def rate_of(subject: AnalysedPlan, move: Transfer) -> Fraction:
    machine = subject.problem.machine
    return min(
        machine.engines[move.engine].rate, *(machine.links[each].rate for each in move.route)
    )


def test_chain_idle_cycles_phases_and_traffic_add_up(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    claim = analysis.subject.plan.claim
    assert sum(analysis.chain.cycles().values()) == claim.makespan
    for before, after in zip(analysis.chain.links, analysis.chain.links[1:], strict=False):
        assert before.end + after.unused == after.start
    for core in analysis.cores:
        assert core.busy + sum(core.idle().values()) == claim.makespan
        edges = [span.start for span in core.spans] + [span.end for span in core.spans]
        assert len(edges) == 2 * len(core.spans)
    assert [phase.start for phase in analysis.phases[1:]] == [
        phase.end for phase in analysis.phases[:-1]
    ]
    for phase in analysis.phases:
        assert sum(phase.chain.values()) == phase.end - phase.start
        assert phase.chain[phase.part] == max(phase.chain.values())
        assert phase.cores <= 1
    assert sum(row.bytes for row in analysis.traffic) == claim.dram_traffic


def test_what_is_moved_beyond_the_compulsory_adds_up(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    problem, claim = analysis.subject.problem, analysis.subject.plan.claim
    beyond = claim.dram_traffic - compulsory_dram_traffic(problem)
    assert sum(row.bytes for row in analysis.excess) == beyond > 0
    assert all(row.bytes > 0 and row.operator for row in analysis.excess)
