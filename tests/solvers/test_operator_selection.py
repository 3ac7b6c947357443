"""Operators that pay are used more often, by credit or as the best."""

import numpy as np

from spmilp.solvers.common.operator_selection import ByBestRate, ByCredit


def test_by_credit_turns_are_in_proportion_to_what_is_expected_until_something_pays() -> None:
    selection = ByCredit({"often": 0.4, "seldom": 0.1})
    turns = []

    for _ in range(10):
        turns.append(selection.in_turn()[0])
        selection.learn(turns[-1], selection.rate(turns[-1]))

    assert turns.count("often") == 8
    for _ in range(100):
        selection.learn("seldom", 1.0)
    assert selection.rate("seldom") > selection.rate("often")
    for _ in range(100):
        selection.learn("often", 0.0)
    assert selection.rate("often") == ByCredit.LEAST_RATE


def test_what_saves_most_for_its_time_is_taken_most_often() -> None:
    selection = ByBestRate(("loads", "cores"), np.random.default_rng(0), has_clock=True)
    taken = []

    for _ in range(200):
        step = selection.next()
        taken.append(step)
        selection.learn(step, 1000 if step == "loads" else 0, 0.1)

    assert taken.count("loads") > 120
    assert taken.count("cores") > 2


def test_where_nothing_saves_anything_all_kinds_get_equal_time() -> None:
    selection = ByBestRate(("loads", "cores"), np.random.default_rng(0), has_clock=True)
    seconds = {"loads": 0.2, "cores": 1.0}
    spent = dict.fromkeys(seconds, 0.0)

    for _ in range(400):
        step = selection.next()
        spent[step] += seconds[step]
        selection.learn(step, 0, seconds[step])

    assert max(spent.values()) < 1.2 * min(spent.values())


def test_without_a_clock_steps_take_turns() -> None:
    selection = ByBestRate(("loads", "cores"), np.random.default_rng(0), has_clock=False)
    taken = []

    for _ in range(10):
        taken.append(selection.next())
        selection.learn(taken[-1], 0, 0.1)

    assert taken == ["loads", "cores"] * 5
