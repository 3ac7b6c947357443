"""Fused bands where results do not fit."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.problem.problem import Problem
from spmilp.solvers.schedule.orders import fused_bands, round_robin
from tests.solvers.chains import chain, star

LAYERS, STRIPS = 3, 20
HALVES = np.repeat([0, 1] * LAYERS, STRIPS // 2)
"""Either core computes one half of each layer."""


def most_waiting(problem: Problem, order: Sequence[int]) -> int:
    """Return the most bytes of results that wait for a reader, tasks one after another."""
    readers = {
        buffer.index: {
            task.index
            for task in problem.tasks
            for read in task.reads
            if problem.slices[read].buffer == buffer.index
        }
        for buffer in problem.buffers
    }
    waiting: set[int] = set()
    most = 0
    done: set[int] = set()
    for task in order:
        done.add(task)
        waiting |= {written for written in problem.tasks[task].writes if readers[written]}
        most = max(most, sum(problem.buffers[one].bytes for one in waiting))
        waiting = {one for one in waiting if not readers[one] <= done}
    return most


def test_where_memory_is_ample_cores_take_turns_layer_by_layer() -> None:
    problem = chain(star(2, 1 << 20), layers=LAYERS, strips=STRIPS)

    assert fused_bands(problem, HALVES).tolist() == round_robin(problem, HALVES).tolist()


def test_where_results_do_not_fit_fewer_of_them_wait_at_one_time() -> None:
    problem = chain(star(2, 1024), layers=LAYERS, strips=STRIPS)

    waiting = most_waiting(problem, fused_bands(problem, HALVES).tolist())

    assert waiting < most_waiting(problem, round_robin(problem, HALVES).tolist())


def test_each_band_has_one_final_tile_of_each_core() -> None:
    problem = chain(star(2, 1024), layers=LAYERS, strips=STRIPS)
    last_layer = range((LAYERS - 1) * STRIPS, LAYERS * STRIPS)

    order = [task for task in fused_bands(problem, HALVES).tolist() if task in last_layer]

    assert [HALVES[task] for task in order] == [0, 1] * (STRIPS // 2)


@pytest.mark.full
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    cores=st.integers(1, 4),
    room=st.sampled_from([1024, 2048, 8192]),
    layers=st.integers(1, 4),
    strips=st.integers(1, 9),
    data=st.data(),
)
def test_every_task_comes_once_and_after_all_that_it_follows(
    cores: int, room: int, layers: int, strips: int, data: st.DataObject
) -> None:
    problem = chain(star(cores, room), layers=layers, strips=strips)
    count = len(problem.tasks)
    chosen = data.draw(st.lists(st.integers(-1, cores - 1), min_size=count, max_size=count))

    order = fused_bands(problem, np.array(chosen)).tolist()

    place = {task: position for position, task in enumerate(order)}
    assert sorted(order) == list(range(count))
    for task, before in enumerate(problem.predecessors()):
        assert all(place[earlier] < place[task] for earlier in before)
