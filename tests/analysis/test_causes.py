"""What is said of plans of hundreds of transfers is looked up again, cycle by cycle."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

import spmilp
from analysis.plans import SIZES, analysed
from benchmarks.generated import generated_problem
from spmilp.analysis.analyse import Analysis, analyse
from spmilp.analysis.causes import Cause, Wait
from spmilp.analysis.space import tensor_name
from spmilp.analysis.subject import Subject
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Transfer

pytestmark = pytest.mark.parametrize(("tasks", "cores"), SIZES)


def all_causes(analysis: Analysis) -> list[tuple[int, Cause]]:
    return [(number, cause) for number, causes in enumerate(analysis.causes) for cause in causes]


def transfers_at(subject: Subject, cycle: int) -> list[Transfer]:
    return [move for move in subject.plan.transfers if move.start <= cycle < move.end]


def test_a_cause_is_the_end_of_its_activity_and_not_after_the_start(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    for activity, cause in all_causes(analysis):
        assert cause.until == analysis.subject.ends[cause.activity]
        assert cause.until <= analysis.subject.starts[activity]


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


def rate_of(subject: Subject, move: Transfer) -> Fraction:
    machine = subject.problem.machine
    return min(
        machine.engines[move.engine].rate, *(machine.links[each].rate for each in move.route)
    )


def test_the_named_residencies_are_operands_or_lie_in_the_way(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    subject = analysis.subject
    residencies = subject.plan.residencies
    for activity, cause in all_causes(analysis):
        if cause.wait in (Wait.WRITER, Wait.ARRIVAL, Wait.STORED):
            assert cause.residency in subject.reads(activity)
            assert subject.filler(cause.residency or 0) == cause.activity
            memory = residencies[cause.residency or 0].memory
            in_dram = subject.problem.machine.memories[memory].kind is MemoryKind.DRAM
            assert in_dram == (cause.wait is Wait.STORED)
        if cause.wait is Wait.ROOM and cause.residency is not None:
            freed = residencies[cause.residency]
            users = (*subject.reads(cause.activity), *subject.writes(cause.activity))
            assert cause.residency in users
            assert any(
                residencies[each].memory == freed.memory
                and residencies[each].offset < freed.offset + freed.bytes
                and freed.offset < residencies[each].offset + residencies[each].bytes
                for each in subject.writes(activity)
            )


def test_almost_nothing_starts_later_than_its_causes_say(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    starts = analysis.subject.starts
    late = [
        number
        for number, causes in enumerate(analysis.causes)
        if starts[number] > (causes[0].until if causes else 0)
    ]
    assert len(late) <= len(starts) / 100


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
        assert max(phase.cores, phase.core_use, phase.engine_use, phase.link_use) <= 1
    assert sum(row.bytes for row in analysis.traffic) == claim.dram_traffic


def test_live_bytes_are_between_the_residencies_and_the_peak(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    for space in analysis.spaces:
        here = [analysis.subject.plan.residencies[index] for index in space.residencies]
        assert space.peak == max((each.offset + each.bytes for each in here), default=0)
        for cycle, live, top in list(zip(space.cycles, space.live, space.tops, strict=True))[::7]:
            alive = [each for each in here if each.start <= cycle < each.end]
            assert top == max((each.offset + each.bytes for each in alive), default=0)
            assert live <= sum(each.bytes for each in alive)
            assert live <= top


def test_where_the_dram_is_slow_loading_bounds_the_plan(tasks: int, cores: int) -> None:
    problem = generated_problem(tasks, cores)
    links = tuple(
        replace(link, rate=link.rate / 64) if "dram" in (link.source, link.target) else link
        for link in problem.machine.links
    )
    slowed = replace(problem, machine=replace(problem.machine, links=links))
    result = spmilp.solve(slowed, solver="greedy:locality/round_robin")
    assert result.plan is not None
    slow = analyse(slowed, result.plan)
    cycles = slow.chain.cycles()
    assert max(cycles, key=lambda part: cycles[part]).value in ("load", "store")
    waits = Counter(link.cause.wait for link in slow.chain.links if link.cause)
    assert waits[Wait.LINK] == max(waits.values())


def test_what_is_double_buffered_arrives_while_its_tensor_is_read(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    subject = analysis.subject
    residencies = subject.plan.residencies

    def tensor(residency: int) -> tuple[int, str]:
        slice_ = residencies[residency].slice
        assert slice_ is not None
        return residencies[residency].memory, tensor_name(
            subject, subject.problem.slices[slice_].buffer
        )

    expected = [
        end
        for move in subject.plan.transfers
        for end in move.destinations
        if any(
            read != end and tensor(read) == tensor(end)
            for placement in subject.plan.placements
            if placement.start < move.end and move.start < placement.end
            for read in placement.reads
        )
    ]
    assert sorted(analysis.double_buffered) == sorted(expected)
    assert expected


def test_what_is_moved_beyond_the_compulsory_adds_up(tasks: int, cores: int) -> None:
    analysis = analysed(tasks, cores)
    problem, claim = analysis.subject.problem, analysis.subject.plan.claim
    beyond = claim.dram_traffic - compulsory_dram_traffic(problem)
    assert sum(row.bytes for row in analysis.excess) == beyond > 0
    assert all(row.bytes > 0 and row.operator for row in analysis.excess)
