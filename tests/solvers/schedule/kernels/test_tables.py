"""The scheduler's tables grow until a schedule fits in them, and its runs end in time."""

import numpy as np
import pytest

from spmilp.machine.read import load_machine
from spmilp.solvers.schedule.assignments import locality
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.schedule.kernels.tables import shared_memory_beside
from spmilp.solvers.schedule.orders import depth_first
from tests.solvers.chains import chain, star

PROBLEM = chain(star(4, 1000), layers=4, strips=8)


def state_of(runner: Runner) -> ScheduleState:
    stop, state = runner.run(depth_first(PROBLEM), locality(PROBLEM), Weights())
    assert stop is Stop.DONE
    return state


def test_tables_that_begin_too_small_give_the_same_schedule() -> None:
    runner = Runner(PROBLEM)
    expected = state_of(runner)
    runner.growth = 2.0**-10
    found = state_of(runner)
    assert 2.0**-10 < runner.growth < 1
    np.testing.assert_array_equal(found.tasks, expected.tasks)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.made_residencies(), expected.made_residencies())
    np.testing.assert_array_equal(found.made_transfers(), expected.made_transfers())


@pytest.mark.parametrize(
    ("preset", "spills"), [("mesh4x4", {}), ("gap9", {}), ("xdna1", {"spm_2_5": "memtile_2_1"})]
)
def test_scratchpads_spill_beside_where_a_shared_memory_is_nearer_and_need_not_be_passed(
    preset: str, spills: dict[str, str]
) -> None:
    machine = load_machine(preset).machine
    found = {
        one.name: machine.memories[other].name
        for one in machine.memories
        if (other := shared_memory_beside(machine, one.index)) >= 0
    }
    assert spills.items() <= found.items()
    assert bool(found) == bool(spills)
