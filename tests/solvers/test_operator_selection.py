"""Operators that pay are used more often."""

from spmilp.solvers.common.operator_selection import OperatorSelection


def test_turns_are_in_proportion_to_what_is_expected_until_something_pays() -> None:
    selection = OperatorSelection({"often": 0.4, "seldom": 0.1})
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
    assert selection.rate("often") == 0.03


def test_what_gains_most_for_its_cost_is_taken_most_often() -> None:
    selection = OperatorSelection({"loads": 0.5, "cores": 0.5})
    taken = []

    for _ in range(200):
        taken.append(selection.in_turn()[0])
        selection.learn(taken[-1], taken[-1] == "loads", 0.1)

    assert taken.count("loads") > 120
    assert taken.count("cores") > 2


def test_where_nothing_gains_anything_all_cost_the_same() -> None:
    selection = OperatorSelection({"loads": 0.5, "cores": 0.5})
    seconds = {"loads": 0.2, "cores": 1.0}
    spent = dict.fromkeys(seconds, 0.0)

    for _ in range(400):
        step = selection.in_turn()[0]
        spent[step] += seconds[step]
        selection.learn(step, 0.0, seconds[step])

    assert max(spent.values()) < 1.2 * min(spent.values())
