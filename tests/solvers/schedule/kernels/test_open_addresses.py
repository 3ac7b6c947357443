"""With open addresses all bytes fit at all times; packed, such a schedule is a valid plan."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.generated import generated_problem
from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.shortening import OpenSchedule
from spmilp.solvers.schedule.kernels.extract import columns_of
from spmilp.solvers.schedule.kernels.memories import free_by, gathered
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import NONE, tables
from spmilp.solvers.schedule.kernels.run import can_be_open
from spmilp.solvers.schedule.kernels.schedule_state import FREE, RESERVED, AddressSpace
from spmilp.solvers.schedule.portfolio import Found, plan_from, schedules_by
from tests.solvers.chains import chain, star
from tests.solvers.fans import fan_problem
from tests.solvers.tiny_problems import tiny_problem

NO_BOUND = Bound("none", Quantity.MAKESPAN, 0)


def _problems() -> Iterator[Problem]:
    yield from (tiny_problem(number) for number in range(80))
    yield from (fan_problem(number) for number in range(20))
    yield generated_problem(90, 4, 1)
    yield chain(star(2, 2048), layers=4, strips=5)


def _schedules(share: float) -> Iterator[tuple[Problem, Found]]:
    for problem in filter(can_be_open, _problems()):
        shares = np.full(len(problem.machine.memories), share)
        for found in schedules_by(problem, shares=shares):
            yield problem, found


def overwritten(columns: PlanColumns) -> Iterator[tuple[int, int]]:
    """Yield the residencies that a task reads and writes at one address, with what it writes."""
    for task in range(columns.tasks):
        for old in columns.reads.values(task):
            for new in columns.fills.values(task):
                if columns.offset[old] == columns.offset[new]:
                    yield old, new


def most_bytes(problem: Problem, columns: PlanColumns, memory: int) -> int:
    """Return the most bytes of a memory that are in use at any time."""
    aligned = problem.machine.memories[memory].alignment
    taken = -(-columns.bytes // aligned) * aligned
    shared = dict(overwritten(columns))
    changes: dict[int, int] = {}
    for one in np.flatnonzero(columns.memory == memory).tolist():
        # What is overwritten in place ends when its successor begins.
        end = columns.first[shared[one]] if one in shared else columns.last[one]
        changes[columns.first[one]] = changes.get(columns.first[one], 0) + taken[one]
        changes[end] = changes.get(end, 0) - taken[one]
    return max(np.cumsum([changes[cycle] for cycle in sorted(changes)]).tolist(), default=0)


@pytest.mark.full
@pytest.mark.parametrize("share", [1.0, 0.8])
def test_no_memory_ever_holds_more_bytes_than_it_may(share: float) -> None:
    in_place = full = 0
    for problem, found in _schedules(share):
        columns = columns_of(problem, found.state)
        in_place += len(list(overwritten(columns)))
        for memory in problem.machine.memories:
            if memory.usable is not None:
                most = most_bytes(problem, columns, memory.index)
                assert most <= share * memory.usable, (problem.name, found.trial, memory.name)
                full += most > 0.7 * share * memory.usable
    assert in_place > 5
    assert full > 25


@pytest.mark.full
def test_a_packed_schedule_is_a_valid_plan_that_is_no_longer_than_was_said() -> None:
    packed = tight = 0
    for problem, found in _schedules(1.0):
        opened = OpenSchedule(problem, columns_of(problem, found.state), Clock(None))
        assert opened.makespan <= found.state.makespan()
        plan = opened.packed(Clock(None))
        if plan is None:
            tight += 1
            continue
        packed += 1
        made = plan_from(problem, found, NO_BOUND, "list", plan.columns())
        assert made.claim.makespan == plan.makespan
        assert not check(problem, made)
    assert packed > 10 * tight
    assert packed > 100


def test_where_memory_is_ample_nothing_changes() -> None:
    problem = chain(star(2, 1 << 20), layers=4, strips=5)
    shares = np.ones(len(problem.machine.memories))
    opened = list(schedules_by(problem, shares=shares))
    addressed = list(schedules_by(problem))
    assert [one.score[:2] for one in opened] == [one.score[:2] for one in addressed]
    again = opened[0].filled(problem, None)
    assert again is not None
    assert again.score == addressed[0].score
    assert opened[0].filled(problem, np.zeros(shares.size)) is None


def memory_of(*blocks: tuple[int, int, int]) -> SimpleNamespace:
    """Return a memory of blocks: bytes, holder and the cycle from which it is free."""
    space = AddressSpace(tables((1, 16), "start", "holder", "free_from"), np.array([len(blocks)]))
    start = 0
    for position, (size, holder, free_from) in enumerate(blocks):
        space.blocks[0, position] = (start, holder, free_from)
        start += size
    space.blocks[0, len(blocks)] = (start, RESERVED, 0)
    return SimpleNamespace(space=space, residencies=tables((4,), "offset"))


def blocks_of(state: SimpleNamespace) -> list[tuple[int, int, int]]:
    row, count = state.space.blocks[0], int(state.space.length[0])
    return [
        (int(row[i + 1].start - row[i].start), int(row[i].holder), int(row[i].free_from))
        for i in range(count)
    ]


def test_bytes_are_gathered_from_what_is_free_last_wherever_it_lies() -> None:
    state = memory_of((8, FREE, 5), (4, 1, 0), (8, FREE, 20), (4, 2, 0), (8, FREE, 9))
    assert [free_by(state, 0, size) for size in (8, 9, 16, 24, 25)] == [5, 9, 9, 20, 1 << 62]
    address = gathered(state, 0, 12, 10)
    # All that is free at 9, and half of what is free at 5; what is free at 20 comes too late.
    assert blocks_of(state) == [(4, FREE, 5), (4, 1, 0), (8, FREE, 20), (4, 2, 0), (12, FREE, 9)]
    assert address == 20
    assert state.residencies["offset"].tolist() == [0, 4, 16, 0]


def test_nothing_is_gathered_where_too_little_is_free_in_time() -> None:
    blocks = ((8, FREE, 5), (4, 1, 0), (8, FREE, 20))
    state = memory_of(*blocks)
    assert gathered(state, 0, 12, 10) == NONE
    assert blocks_of(state) == [*blocks]
