"""The scheduler's tables grow until a schedule fits in them, and its runs end in time."""

import numpy as np
import pytest

from spmilp.solvers.schedule.assignments import locality
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.schedule.orders import depth_first
from tests.solvers.chains import chain, star

PROBLEM = chain(star(4, 1000), layers=4, strips=8)


def state_of(runner: Runner) -> ScheduleState:
    stop, state = runner.run(depth_first(PROBLEM), locality(PROBLEM), Weights())
    assert stop is Stop.DONE
    return state


@pytest.mark.parametrize("table", ["rows", "steps", "blocks"])
def test_tables_that_begin_too_small_give_the_same_schedule(table: str) -> None:
    runner = Runner(PROBLEM)
    expected = state_of(runner)
    enough = getattr(runner.sizes, table)
    setattr(runner.sizes, table, 4)
    found = state_of(runner)
    assert 4 < getattr(runner.sizes, table) < enough
    np.testing.assert_array_equal(found.tasks, expected.tasks)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.made_residencies(), expected.made_residencies())
    np.testing.assert_array_equal(found.made_transfers(), expected.made_transfers())
