"""A plan by hand gives the right numbers; broken ones are caught, by name and cycle."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spmilp.checker.values.replay import replay
from spmilp.checker.values.state import ReplayError, ValuesError
from spmilp.errors import ExitCode
from spmilp.frontend.graph import Network
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from tests.frontend.running import network_values
from values.sequential import SPM
from values.small_network import (
    NETWORK,
    part,
    script_of_two_strips,
    some_inputs,
    two_strips,
    whole_slices,
)

PROBLEM = two_strips()
PLAN = script_of_two_strips(PROBLEM).plan()
INPUTS = some_inputs()
EXPECTED = network_values(NETWORK, INPUTS)["z"]


def outputs(problem: Problem = PROBLEM, plan: Plan = PLAN, network: Network = NETWORK) -> Any:
    return replay(problem, plan, network, INPUTS)["z"]


def residency_of(plan: Plan, slice_: int, memory: int) -> Residency:
    """Return the first residency of a slice in a memory."""
    return next(one for one in plan.residencies if (one.slice, one.memory) == (slice_, memory))


def changed(plan: Plan, residency: Residency, **fields: Any) -> Plan:
    """Return the plan with another residency in the place of one."""
    table = list(plan.residencies)
    table[residency.index] = replace(residency, **fields)
    return replace(plan, residencies=tuple(table))


def test_strips_with_halos_compute_what_the_whole_does() -> None:
    np.testing.assert_allclose(outputs(), EXPECTED, rtol=1e-6)


FIRST, RELU, SUMS = PLAN.placements[0], PLAN.placements[2], residency_of(PLAN, 3, SPM)
WRONG_ROW = part(8, 1, (0, 0, 1, 0), (1, 2, 1, 4))
BROKEN: dict[str, dict[str, Any]] = {
    rf"task conv0 reads .*x1 in spm.* 32 of 32 B are not there at cycle {FIRST.start - 1}": {
        "plan": replace(
            PLAN, placements=(replace(FIRST, start=FIRST.start - 1), *PLAN.placements[1:])
        )
    },
    r"task conv0 reads .*w2 in spm.* B changed while it did": {
        "plan": changed(PLAN, SUMS, offset=residency_of(PLAN, 2, SPM).offset)
    },
    r"task relu2 reads .*y3 in spm.*48 of 48 B changed": {
        "problem": replace(
            PROBLEM, tasks=tuple(replace(task, in_place=()) for task in PROBLEM.tasks)
        )
    },
    r"task relu2 reads .*48 of 48 B are not there": {"plan": changed(PLAN, SUMS, end=RELU.start)},
    r"task conv0 needs 32 elements of x, .* only 24 of them": {
        "problem": replace(PROBLEM, slices=(*PROBLEM.slices[:8], WRONG_ROW))
    },
    r"transfer 0 of w2 reads .* 8 of 72 B are not there": {
        "plan": replace(PLAN, tensors=(1000, 2008, 3000))
    },
    r"cannot be replayed: .*3 placements for 4 tasks": {
        "plan": replace(PLAN, placements=PLAN.placements[:3])
    },
    "has no group relu": {"network": replace(NETWORK, groups=NETWORK.groups[:1])},
}


@pytest.mark.parametrize("message", BROKEN)
def test_what_is_broken_is_caught_by_name_and_cycle(message: str) -> None:
    with pytest.raises(ReplayError, match=message) as raised:
        outputs(**BROKEN[message])
    assert raised.value.exit_code is ExitCode.PLAN_INVALID


def test_an_overlap_with_a_value_that_is_needed_later_is_caught() -> None:
    weight, row = residency_of(PLAN, 2, SPM), residency_of(PLAN, 8, SPM)
    lost = r"task conv0 reads .*w2 in spm.* 8 of 18 elements are not those of w2"
    with pytest.raises(ReplayError, match=lost):
        outputs(plan=changed(PLAN, row, offset=weight.offset))


def test_a_source_that_is_overwritten_during_its_transfer_is_caught() -> None:
    """The first strip is still being stored when the next rows are loaded on top of it."""
    store = next(one for one in PLAN.transfers if one.slice == 5)
    rows = next(one for one in PLAN.transfers if one.slice == 1)
    transfers = list(PLAN.transfers)
    late = changed(
        PLAN, PLAN.residencies[rows.destinations[0]], offset=PLAN.residencies[store.source].offset
    )
    transfers[store.index] = replace(store, end=rows.end)
    assert outputs(plan=replace(late, transfers=tuple(transfers))) is not None, "all is sent"
    transfers[store.index] = replace(store, sent=rows.end, end=rows.end)
    plan = replace(late, transfers=tuple(transfers))
    with pytest.raises(ReplayError, match=r"transfer 3 of z5 reads .* 48 of 48 B changed while"):
        outputs(plan=plan)


def test_an_output_that_is_not_stored_is_caught() -> None:
    plan = replace(PLAN, transfers=PLAN.transfers[:-1])
    kept = [
        replace(one, filled_by_transfer=None) if one.filled_by_transfer == 6 else one
        for one in plan.residencies
    ]
    with pytest.raises(ReplayError, match="output z: 48 of 96 B in dram at 3000 have not been"):
        outputs(plan=replace(plan, residencies=tuple(kept)))


def test_buffers_may_lie_in_another_order_of_axes() -> None:
    """Strips of y with channels last; the Relu's output is in the model's order again."""
    axes = (0, 2, 3, 1)
    buffers = list(PROBLEM.buffers)
    for index in (3, 4):
        tile = buffers[index].tile
        assert tile is not None
        buffers[index] = replace(buffers[index], shape=(1, 3, 4, 1), tile=replace(tile, axes=axes))
    problem = replace(
        PROBLEM, buffers=tuple(buffers), slices=(*whole_slices(tuple(buffers)), *PROBLEM.slices[7:])
    )
    plan = script_of_two_strips(problem, in_place=False).plan()
    np.testing.assert_array_equal(outputs(problem, plan), outputs())


def test_weights_may_be_on_chip_from_the_start() -> None:
    kept = replace(PROBLEM.buffers[2], starts_in=SPM, place=None)
    buffers = (*PROBLEM.buffers[:2], kept, *PROBLEM.buffers[3:])
    problem = replace(PROBLEM, buffers=buffers)
    plan = script_of_two_strips(problem).plan()
    np.testing.assert_array_equal(outputs(problem, plan), outputs())


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "no values are given for the network input x"),
        ({"x": np.zeros((1, 2, 6, 4))}, "x: given float64 of shape .*, expected float32"),
        ({"x": np.zeros((2, 6, 4), np.float32)}, r"given float32 of shape \(2, 6, 4\), expected"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: Any, message: str) -> None:
    with pytest.raises(ValuesError, match=message):
        replay(PROBLEM, PLAN, NETWORK, inputs)


def test_weights_of_which_the_file_has_only_the_shape_are_refused() -> None:
    shapeless = replace(NETWORK.tensors["w"], data=None, shape_only=True)
    network = replace(NETWORK, tensors={**NETWORK.tensors, "w": shapeless})
    with pytest.raises(ValuesError, match="only a shape for the constant w"):
        outputs(network=network)
