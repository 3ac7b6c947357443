"""The curve of occupied bytes."""

from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Residency


def residency(index: int, start: int, end: int, offset: int, size: int) -> Residency:
    return Residency(
        index=index, slice=index, memory=0, offset=offset, bytes=size, start=start, end=end
    )


def test_the_curve_is_the_sum_of_what_is_alive() -> None:
    residencies = [residency(0, 0, 10, 0, 16), residency(1, 4, 12, 16, 8)]
    assert live_bytes(residencies) == ([0, 4, 10, 12], [16, 24, 8, 0])


def test_bytes_freed_and_taken_in_one_cycle_count_once() -> None:
    assert live_bytes([residency(0, 0, 5, 0, 16), residency(1, 5, 9, 0, 16)]) == (
        [0, 5, 9],
        [16, 16, 0],
    )


def test_bytes_that_are_shared_in_place_count_once() -> None:
    residencies = [residency(0, 0, 8, 32, 16), residency(1, 4, 12, 32, 24)]
    assert live_bytes(residencies) == ([0, 4, 8, 12], [16, 24, 24, 0])


def test_nothing_has_an_empty_curve() -> None:
    assert live_bytes([]) == ([], [])
