"""Orders of tasks, and rules mixed by what each operator is worth under them."""

import numpy as np

from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.orders import (
    operand_stationary,
    round_robin,
)
from spmilp.solvers.schedule.portfolio import Portfolio
from tests.solvers.chains import chain, star


def test_cores_take_turns_within_a_layer_and_layers_do_not_mix() -> None:
    problem = chain(star(2, 4096), layers=2, strips=4)
    cores = np.array([0, 0, 1, 1] * 2)

    assert operand_stationary(problem).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert round_robin(problem, cores).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert round_robin(problem, np.full(8, -1)).tolist() == operand_stationary(problem).tolist()


def test_only_the_rules_that_are_asked_for_are_tried() -> None:
    problem = chain(star(2, 1400), layers=4, strips=12)
    only = [("locality", "round_robin"), ("contiguous", "critical_path")]

    found = Portfolio(problem, Runner(problem), only)

    assert [str(one.trial) for one in found if one] == [
        "locality/round_robin",
        "contiguous/critical_path",
    ]
