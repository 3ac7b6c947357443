from spmilp.bounds.roofline import roofline
from spmilp.lowering.rates import shared_dram_rate
from spmilp.machine.read import load_machine
from tests.lowering.builders import NetworkBuilder, star_machine


def test_ports_that_read_and_write_in_turn_are_found() -> None:
    assert shared_dram_rate(load_machine("stream_quad").machine) == 8
    assert shared_dram_rate(load_machine("set_8x8").machine) == 64
    assert shared_dram_rate(star_machine()) == float("inf")


def test_what_such_ports_take_adds_to_what_they_send() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.relu(builder.input((1, 1024))))
    assert roofline(network, load_machine("stream_quad").machine).cycles == 2 * 4096 // 8
    assert roofline(network, star_machine()).dram == 4096 / 16
