"""Tilings that fit, for a plan in the first seconds."""

from pathlib import Path

import pytest

from spmilp.frontend.find import find_model
from spmilp.frontend.load import load_network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.machine.read import load_machine
from spmilp.solvers.list_scheduler.schedules import least_value
from spmilp.tile_selection.coarse import fast_initial_tilings
from tests.lowering.builders import NetworkBuilder, star_machine

MODELS = Path(__file__).parents[2] / "models"


def test_every_core_has_a_tile_where_axes_are_long_enough() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1, 3, 16, 16)), 16))

    tilings = fast_initial_tilings(network, star_machine(4, 1 << 16))

    assert tilings is not None
    assert [tiling.counts for tiling in tilings.values()] == [(1, 4, 1, 1)]


def test_tiles_are_cut_further_until_they_fit() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1, 3, 64, 64)), 16))
    machine = star_machine(4, 1 << 13)

    tilings = fast_initial_tilings(network, machine)

    assert tilings is not None
    assert groups_that_do_not_fit(lower(network, machine, tilings)) == {}


def test_what_fits_in_no_way_has_no_fast_initial_tilings() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1, 3, 64, 64)), 16))

    assert fast_initial_tilings(network, star_machine(4, 64)) is None


def test_what_would_take_too_many_tiles_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((1, 3, 64, 64)), 16)
    network, machine = builder.network(builder.conv(data, 16)), star_machine(4, 1 << 16)
    assert fast_initial_tilings(network, machine) is not None

    monkeypatch.setattr("spmilp.tile_selection.coarse.MOST_PAIRS", 15)

    assert fast_initial_tilings(network, machine) is None


@pytest.mark.parametrize("model", ["resnet8_int8.onnx", "ds_cnn_f16.onnx", "autoencoder_int8.onnx"])
@pytest.mark.parametrize("machine", ["mesh4x4", "gap9", "xdna1"])
def test_networks_have_a_schedule_with_fast_initial_tilings(model: str, machine: str) -> None:
    target = load_machine(machine).machine
    network = load_network(find_model(str(MODELS / model)), {}, target.kinds)

    tilings = fast_initial_tilings(network, target)

    assert tilings is not None
    assert least_value(lower(network, target, tilings)) is not None
