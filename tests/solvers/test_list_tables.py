"""The list scheduler's tables grow until a schedule has room in them."""

import numpy as np
import pytest

from spmilp.machine.routes import Routes
from spmilp.solvers.kernels.schedule_state import (
    COUNT_RESIDENCIES,
    COUNT_TRANSFERS,
    ScheduleState,
    Stop,
    Weights,
)
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.assignments import locality
from spmilp.solvers.list_scheduler.orders import depth_first
from tests.solvers.chains import chain, star

PROBLEM = chain(star(4, 1000), layers=4, strips=8)


def state_of(runner: Runner) -> ScheduleState:
    stop, state = runner.run(depth_first(PROBLEM), locality(PROBLEM), Weights())
    assert stop is Stop.DONE
    return state


@pytest.mark.parametrize("table", ["_room", "_pool", "_blocks"])
def test_tables_that_begin_too_small_give_the_same_schedule(table: str) -> None:
    runner = Runner(PROBLEM, Routes(PROBLEM.machine))
    expected = state_of(runner)
    enough = getattr(runner, table)
    setattr(runner, table, 4)
    found = state_of(runner)
    assert 4 < getattr(runner, table) < enough
    kept, moves = expected.counts[COUNT_RESIDENCIES], expected.counts[COUNT_TRANSFERS]
    np.testing.assert_array_equal(found.tasks, expected.tasks)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.residencies[:kept], expected.residencies[:kept])
    np.testing.assert_array_equal(found.transfers[:moves], expected.transfers[:moves])
