"""Windows: what they decide keeps a plan valid."""

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from spmilp.checker.check import check
from spmilp.problem.problem import Buffer, BufferKind, Problem, Slice, Task
from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.lns.reassignment.move import snapshot
from spmilp.solvers.lns.reassignment.steps import overfull
from spmilp.solvers.lns.window import Claim, Window, handovers, window_somewhere
from spmilp.solvers.lns.window_search import WindowModel
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import FillLimits
from spmilp.solvers.partial_order.schedule import timed
from tests.solvers.chains import star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import packed, scheduled

MODEST = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Setting:
    """A list schedule with all addresses open, as early and as late as it can be."""

    def __init__(self, problem: Problem) -> None:
        self.context, self.first = scheduled(problem)
        memories = FillLimits(self.context).memories()
        self.late = backward_pass(self.first, memories)
        self.early = forward_pass(self.late, memories)

    def window(self, size: int, seed: int) -> Window:
        random = np.random.default_rng(seed)
        return window_somewhere(self.context, self.early, self.late, size, random)

    def use_only_the_bytes_in_use(self, window: Window) -> None:
        """Give each memory no more bytes than it holds at the old times of a window."""
        old = snapshot(timed(window.schedule, np.array(window.old)))
        limited = np.flatnonzero(self.context.usable != NEVER).tolist()
        usable = np.where(self.context.usable == NEVER, NEVER, 0)
        for memory, most in overfull(old, usable, limited).items():
            usable[memory] = most
        self.context = replace(self.context, usable=usable)


def _solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    return solver


def test_what_a_window_decides_is_valid_as_it_is() -> None:
    saved = checked = 0

    @MODEST
    @given(problem=problems(), size=st.integers(2, 12), seed=st.integers(0, 9))
    def decide(problem: Problem, size: int, seed: int) -> None:
        nonlocal saved, checked
        setting = Setting(problem)
        window = setting.window(size, seed)
        model, solver = WindowModel(window), _solver()

        status = solver.solve(model.cp)

        assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        solution = model.solution(solver)
        if solution.saved == 0:
            return
        saved += 1
        found = window.result(solution)
        assert found.makespan <= setting.first.makespan
        built = packed(setting.context, found)
        if built is not None:
            checked += 1
            assert check(problem, built) == ()

    decide()
    assert saved >= 15
    assert checked >= 15


@MODEST
@given(problem=problems(), seed=st.integers(0, 9))
def test_the_old_times_are_always_a_solution(problem: Problem, seed: int) -> None:
    setting = Setting(problem)

    assert _admits_old_times(setting.window(8, seed))

    setting.use_only_the_bytes_in_use(setting.window(8, seed))

    assert _admits_old_times(setting.window(8, seed))


def _admits_old_times(window: Window) -> bool:
    model = WindowModel(window)
    model.cp.add(model.saved == 0)
    for activity, start in model.starts.items():
        model.cp.add(start == window.old[activity] - window.start)
    return _solver().solve(model.cp) == cp_model.OPTIMAL


def test_what_outlasts_a_window_does_not_hand_on_its_bytes_at_the_end_of_it() -> None:
    problem = _with_a_value_overwritten_while_another_is_kept()
    context, first = scheduled(problem)
    last = problem.tasks[-1].index
    usable = np.where(context.is_dram, NEVER, 2 * problem.buffers[0].bytes)

    window = Window(
        replace(context, usable=usable), first, first, first=0, until=int(first.start[last])
    )

    assert window.inside == [0, 1, 2]
    assert _admits_old_times(window)


def _with_a_value_overwritten_while_another_is_kept() -> Problem:
    names = ("kept", "first", "second", "result")
    buffers = tuple(
        Buffer(index=n, name=name, kind=BufferKind.INTERMEDIATE, shape=(64,))
        for n, name in enumerate(names)
    )
    slices = tuple(
        Slice(index=one.index, buffer=one.index, start=(0,), extent=one.shape, bytes=one.bytes)
        for one in buffers
    )
    tasks = (
        Task(index=0, name="keep", cycles=(10,), writes=(0,)),
        Task(index=1, name="write", cycles=(10,), writes=(1,), after=(0,)),
        Task(index=2, name="add", cycles=(10,), reads=(1,), writes=(2,), in_place=((1, 2),)),
        Task(index=3, name="read both", cycles=(10,), reads=(0, 2), writes=(3,)),
    )
    return Problem(
        name="in place", machine=star(1, 1024), buffers=buffers, slices=slices, tasks=tasks
    )


def test_claims_are_handed_on_to_those_that_begin_later() -> None:
    claims = [Claim(0, 4, 1), Claim(0, 6, 1), Claim(4, 8, 1), Claim(7, 9, 1)]

    assert list(handovers(claims, capacity=2)) == [(0, 2), (1, 3)]


@MODEST
@given(
    claims=st.lists(
        st.builds(
            lambda begin, length, amount: Claim(begin, begin + length, amount),
            st.integers(0, 20),
            st.integers(1, 8),
            st.integers(1, 5),
        ),
        max_size=12,
    ),
    moves=st.lists(st.integers(0, 30), min_size=12, max_size=12),
)
def test_claims_that_are_handed_on_in_order_fit_whatever_their_times(
    claims: list[Claim], moves: list[int]
) -> None:
    claims.sort(key=lambda claim: claim.begin)
    capacity = _peak(claims)
    pairs = list(handovers(claims, capacity))
    moved: list[Claim] = []
    for index, claim in enumerate(claims):
        ready = max((moved[first].end for first, second in pairs if second == index), default=0)
        begin = max(ready, moves[index])
        moved.append(Claim(begin, begin + claim.end - claim.begin, claim.amount))

    assert all(claims[first].end <= claims[second].begin for first, second in pairs)
    assert _peak(moved) <= capacity


def _peak(claims: list[Claim]) -> int:
    return max(
        (
            sum(one.amount for one in claims if one.begin <= claim.begin < one.end)
            for claim in claims
        ),
        default=0,
    )
