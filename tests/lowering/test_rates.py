from dataclasses import replace

from spmilp.bounds.roofline import roofline
from spmilp.lowering.rates import machine_rates, shared_dram_rate
from spmilp.machine.read import load_machine
from tests.lowering.builders import NetworkBuilder, star_machine


def test_pieces_that_many_read_are_passed_on_by_those_who_have_them() -> None:
    rates = replace(
        machine_rates(star_machine(16)), outbound=24.0, transfer_rate=8.0, concurrent=3.0
    )
    # After one round 4 have it, after two 16; meanwhile a memory could have given 3 at a time.
    assert rates.passing_on(1000, copies=16) == 2 * 1000 * 3
    assert rates.passing_on(1000, copies=4) == 1000 * 3
    assert rates.passing_on(1000, copies=1) == 0


def test_the_ports_of_a_memory_say_how_many_it_gives_to_at_once() -> None:
    rates = machine_rates(star_machine(4))
    assert (rates.outbound, rates.transfer_rate, rates.concurrent) == (16, 8, 2)


def test_ports_that_read_and_write_in_turn_are_found() -> None:
    assert shared_dram_rate(load_machine("stream_quad").machine) == 8
    assert shared_dram_rate(load_machine("set_8x8").machine) == 64
    assert shared_dram_rate(star_machine()) == float("inf")


def test_what_such_ports_take_adds_to_what_they_send() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.relu(builder.input((1, 1024))))
    assert roofline(network, load_machine("stream_quad").machine).cycles == 2 * 4096 // 8
    assert roofline(network, star_machine()).dram == 4096 / 16
