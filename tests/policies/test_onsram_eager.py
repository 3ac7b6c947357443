"""OnSRAM without the graph: what came of earlier results decides what is held."""

import pytest

from spmilp.checker.check import check
from spmilp.policies.one_after_another import Setting
from spmilp.policies.onsram_eager import EagerOnSram, Runtime, structures_as_they_come
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from tests.policies.test_onsram import one_core


def traffic(problem: Problem) -> int:
    plan = EagerOnSram().solve(problem, SolveOptions()).plan
    assert plan is not None
    assert check(problem, plan) == ()
    return plan.claim.dram_traffic


CHAIN = (((0,), 1), ((1,), 2), ((2,), 3))


def test_a_chain_stays_in_the_scratchpad_if_it_has_room() -> None:
    assert traffic(one_core((640,) * 4, CHAIN, budget=1280)) == 2 * 640


def test_what_is_not_read_again_is_freed_without_a_store() -> None:
    """There is room for two results: the third one takes the place of the first."""
    long = tuple(((index,), index + 1) for index in range(6))
    assert traffic(one_core((640,) * 7, long, budget=1280)) == 2 * 640


WAITING = (((0,), 1), ((1,), 2), ((2,), 3), ((3, 1), 4))
"""Tensor 1 is read at once, and again at the end."""


def test_what_has_been_read_as_often_as_expected_goes_first_and_comes_back() -> None:
    ample, tight = (traffic(one_core((640,) * 5, WAITING, budget=b)) for b in (2560, 1920))

    assert ample == 2 * 640
    assert tight == 2 * 640

    large = one_core((640, 640, 1280, 640, 640), WAITING, budget=1920)
    assert traffic(large) == 2 * 640 + 2 * 640


FORGETFUL = (((0,), 1), ((0,), 2), ((2,), 3), ((1,), 4), ((0,), 5), ((5,), 6))
"""Tensor 1 has to leave for tensor 2 before it is read; tensor 5 would have room."""


def loaded(problem: Problem) -> list[int]:
    """Return the results that come back from DRAM, before any times are made short."""
    structures = structures_as_they_come(Setting(problem, "onsram:eager"))
    fills = Runtime(structures, 1.0).run().decisions().fills
    return sorted(key.slice for key in fills if key.memory == 1 and key.slice and key.number)


@pytest.mark.parametrize(("size", "found"), [(640, [1, 5]), (648, [1])])
def test_a_result_of_a_pattern_that_was_never_read_where_it_lay_is_not_held(
    size: int, found: list[int]
) -> None:
    """A result of 640 bytes is of the pattern of tensor 1, one of 648 bytes of a new one."""
    problem = one_core((64, 640, 1280, 64, 64, size, 64), FORGETFUL, budget=1600)

    assert loaded(problem) == found
