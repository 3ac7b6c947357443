"""Bands of fused operators where results do not fit."""

from spmilp.frontend.graph import Network
from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import load_machine
from spmilp.solvers.schedule.portfolio import schedules_by
from spmilp.source import load
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.residence import FusedBands
from tests.lowering.builders import NetworkBuilder, star_machine

ROOM = 1 << 15
"""Bytes of each of four cores: together less than one of the large feature maps."""


def wide_then_narrow() -> Network:
    """Return two large feature maps, then small ones."""
    builder = NetworkBuilder()
    data = builder.conv(builder.input((1, 3, 64, 64)), 16)
    data = builder.conv(data, 16)
    data = builder.pool(data)
    return builder.network(builder.conv(builder.conv(data, 8, kernel=1), 8))


def test_where_all_results_fit_nothing_is_fused() -> None:
    assert not any(FusedBands(wide_then_narrow(), star_machine(4, 1 << 22)).bands())


def test_groups_of_a_run_are_cut_along_the_same_axis() -> None:
    network, machine = wide_then_narrow(), star_machine(4, ROOM)
    found = [bands for bands in FusedBands(network, machine).bands() if bands]
    assert found
    for bands in found:
        cut = [{a for a, n in enumerate(t.counts) if n > 1} for t in bands.values()]
        assert set.intersection(*cut)


def test_bands_are_not_cut_along_channels_where_arrays_would_stand_idle() -> None:
    target = load_machine("edge16").replace(spm="256KiB")
    network, _ = load("onnx:light_squeezenet", target)
    bands = next(FusedBands(network, target.machine).bands())

    # A convolution and the pooling behind it, which would read nothing of other channels.
    convolution = bands[min(bands)]
    assert convolution.counts[1] == 1
    assert min(convolution.counts[2:]) > 1


def test_a_chain_whose_rows_fit_stores_nothing_but_its_output() -> None:
    builder = NetworkBuilder()
    data = builder.input((1, 3, 64, 64))
    for _ in range(5):
        data = builder.conv(data, 8)
    network, machine = builder.network(data), star_machine(4, ROOM)
    first, whole = first_choice(network, machine), network.tensors[data].bytes
    assert whole >= 4 * ROOM

    bands = next(FusedBands(network, machine).bands())
    problem = first.lower({**first.tilings, **bands})
    rules = [("across_bands", "fused_bands")]
    found = next(schedules_by(problem, rules)).state

    residencies, transfers = found.residencies, found.made_transfers()
    is_dram = [memory.kind is MemoryKind.DRAM for memory in machine.memories]
    stored = [t["slice"] for t in transfers if is_dram[residencies[t["destination"]]["memory"]]]
    loaded = [t["slice"] for t in transfers if is_dram[residencies[t["source"]]["memory"]]]
    assert sum(problem.slices[one].bytes for one in stored) == whole
    made = {written for task in problem.tasks for written in task.writes}
    assert not any(problem.slices[one].buffer in made for one in loaded)
