import pytest
from hypothesis import given, settings

from spmilp.bounds.roofline import compulsory_bytes, roofline
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import CoreKind, MacArray
from spmilp.machine.read import load_machine
from spmilp.problem.problem import BufferKind
from tests.lowering.builders import NetworkBuilder, star_machine
from tests.lowering.test_lower import Case, cases


@pytest.mark.full
@given(cases())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_no_tiling_beats_the_bound_on_arithmetic(case: Case) -> None:
    bound = roofline(case.network, case.machine)
    busy = sum(task.cycles[0] or 0 for task in case.problem().tasks)
    assert bound.compute * len(case.machine.cores) <= busy


@pytest.mark.full
@given(cases())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_no_tiling_reads_less_than_the_compulsory_bytes(case: Case) -> None:
    problem = case.problem()
    loads, stores = compulsory_bytes(case.network)
    read = {read for task in problem.tasks for read in task.reads}
    given_bytes = sum(
        problem.slices[index].bytes
        for index in read
        if problem.buffers[problem.slices[index].buffer].starts_in is not None
    )
    assert loads <= given_bytes
    outputs = [buffer for buffer in problem.buffers if buffer.kind is BufferKind.OUTPUT]
    assert stores == sum(buffer.bytes for buffer in outputs)


def test_rows_that_a_stride_skips_are_not_compulsory() -> None:
    builder = NetworkBuilder()
    data = builder.input((1, 4, 9, 9))
    network = builder.network(builder.conv(data, 8, kernel=1, stride=2))
    loads, stores = compulsory_bytes(network)
    assert loads == 4 * (4 * 5 * 5 + 8 * 4 + 8)
    assert stores == 4 * 8 * 5 * 5


def test_a_reshaped_input_is_needed_as_a_whole() -> None:
    builder = NetworkBuilder()
    data = builder.input((1, 24))
    view = builder.operator("Reshape", [data], shape=(1, 2, 3, 4))
    pooled = builder.operator("GlobalAveragePool", [view.output])
    network = builder.network(builder.group(view, pooled, anchor=1))
    assert compulsory_bytes(network)[0] == 24 * 4


def test_what_lies_over_the_edge_of_an_array_takes_steps_of_its_own() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.input((64, 64)), 10))
    array = MacArray(dtype="float32", unroll=(("K", 8), ("C", 8)))
    kind = CoreKind(index=0, name="array", arrays=(array,), lanes=(("float32", 8),), launch=40)
    bound = roofline(network, star_machine(4, kinds=[kind]))
    # Ten columns take two steps on eight multipliers, however they are cut. Each of 640 outputs has
    # a vector operation, and one task at least a launch.
    assert bound.compute == (64 * 2 * 8 + 640 / 8 + 40) / 4


def test_each_tile_may_take_another_array() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.input((1, 5)), 13))
    arrays = tuple(
        MacArray(dtype="float32", unroll=unroll) for unroll in ((("K", 6),), (("K", 2), ("C", 4)))
    )
    kind = CoreKind(index=0, name="arrays", arrays=arrays, lanes=(("float32", 10),))
    machine = star_machine(1, kinds=[kind])
    # Six columns on one array and seven on the other take 5 + 8 steps; all on one take 15 or 14.
    tilings = {0: Tiling(counts=(1, 2))}
    busy = sum(task.cycles[0] or 0 for task in lower(network, machine, tilings).tasks)
    assert busy == 5 + 8 + 1 + 1
    assert roofline(network, machine).compute <= busy


def test_in_a_stream_constants_come_again_where_they_have_no_room() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.input((16, 64)), 64))
    given, weights = 16 * 64 * 4, 64 * 64 * 4
    rate = given / roofline(network, star_machine(4, spm=weights)).stream_dram
    small = roofline(network, star_machine(4, spm=weights // 8))
    assert small.loads == given + weights
    assert small.stream_dram == (given + weights // 2) / rate
    assert small.period <= small.cycles


def test_what_a_port_takes_that_reads_and_writes_in_turn_adds_to_what_it_sends() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.relu(builder.input((1, 1024))))
    assert roofline(network, load_machine("stream_quad").machine).cycles == 2 * 4096 // 8
    assert roofline(network, star_machine()).dram == 4096 / 16
