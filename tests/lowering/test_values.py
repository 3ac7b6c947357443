"""Tasks computed one by one, on the bytes of their slices, give what the whole network gives."""

import numpy as np
import pytest
from hypothesis import given, settings

from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.replay import compute_task
from spmilp.checker.values.state import Addresses, raw
from spmilp.frontend.graph import Network
from spmilp.plan.plan import Claim, Plan
from spmilp.problem.problem import Problem
from tests.frontend.running import network_values
from tests.lowering.test_lower import Case, cases

NO_PLAN = Plan(
    placements=(),
    claim=Claim(makespan=0, dram_traffic=0, energy=0, peak_spm=0, bound=0, bound_source=""),
    solver="none",
)


@pytest.mark.full
@given(cases())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_tile_by_tile_gives_the_same_numbers(case: Case) -> None:
    problem, network = case.problem(), case.network
    generator = np.random.default_rng(0)
    inputs = {
        name: generator.integers(-3, 4, network.tensors[name].shape).astype(np.float32)
        for name in network.inputs
    }
    expected = network_values(network, inputs)
    for buffer, values in zip(problem.buffers, run(problem, network, inputs), strict=True):
        assert buffer.tile is not None
        if buffer.tile.of in expected:
            box = tuple(slice(start, stop) for start, stop in buffer.tile.box)
            whole = expected[buffer.tile.of][box]
            ordered = whole.transpose(buffer.tile.axes) if buffer.tile.axes else whole
            np.testing.assert_array_equal(values.view(whole.dtype), ordered.reshape(buffer.shape))


def run(problem: Problem, network: Network, inputs: dict[str, Array]) -> list[Array]:
    """Return the raw bytes of every buffer; tasks run in order of index."""
    addresses = Addresses(problem, NO_PLAN, network)
    given = {name: t.data for name, t in network.tensors.items() if t.data is not None} | inputs
    found: list[Array | None] = [None] * len(problem.buffers)
    for buffer in problem.buffers:
        if buffer.starts_in is not None:
            assert buffer.tile is not None
            box = tuple(slice(start, stop) for start, stop in buffer.tile.box)
            found[buffer.index] = raw(given[buffer.tile.of][box].reshape(buffer.shape))
    for task in problem.tasks:
        operands = []
        for read in task.reads:
            part = problem.slices[read]
            parent = found[part.buffer]
            assert parent is not None
            box = tuple(slice(a, a + n) for a, n in zip(part.start, part.extent, strict=True))
            operands.append((read, parent[box]))
        for written, values in zip(
            task.writes, compute_task(problem, network, addresses, task, operands), strict=True
        ):
            found[written] = values
    return [values for values in found if values is not None]
