from checker.worked_example import PLAN, PROBLEM, broken


def test_the_worked_example_is_valid() -> None:
    assert broken(PLAN, PROBLEM) == {}
