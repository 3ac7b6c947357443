"""The simulator, on machine files, against what was measured on chips."""

from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.silicon.__main__ import kernels
from benchmarks.silicon.chip import Barrier, Chip, Packet
from benchmarks.silicon.tables import single_reads, wolfpine

TRACES = Path(__file__).parents[3] / "shared" / "data" / "tt_npe"


def assert_small(errors: dict[str, float], *, mean: float, worst: float) -> None:
    """Assert that mean and worst absolute value are below what is aimed at."""
    sizes = [abs(error) for error in errors.values()]
    assert fmean(sizes) <= mean
    assert max(sizes) <= worst


def test_a_read_takes_set_up_its_bytes_and_a_round_trip() -> None:
    chip = Chip("wormhole")
    # 28.7 B per cycle; 12 hops of 9 cycles in all, wherever the two are, and 35 at each end.
    alone = 25 + 100 + 12 * 9 + 2 * 35
    below, above = (Packet(0, (1, 3), reader, 2870, 25) for reader in ((1, 2), (1, 4)))

    assert chip.run([[below, Barrier]]) == pytest.approx(alone)
    assert chip.run([[below, Barrier], [above, Barrier]]) == pytest.approx(alone + 100)
    assert chip.run([[below, 7.0, below, Barrier]]) == pytest.approx(alone + 100)


def test_single_reads_take_what_was_measured() -> None:
    assert_small(single_reads(), mean=0.05, worst=0.1)


@pytest.mark.skipif(not TRACES.is_dir(), reason="needs traces of kernels in ../shared/data/tt_npe")
def test_kernels_take_what_was_measured() -> None:
    found = kernels(TRACES)
    assert {kind: len(errors) for kind, errors in found.items()} == {"l1": 29, "dram": 21}
    for errors in found.values():
        assert_small(errors, mean=0.1, worst=0.25)


def test_bursts_take_what_wolfpines_tables_say() -> None:
    tables = wolfpine()
    if tables is None:
        pytest.skip("needs the package wolfpine, for its measured tables")
    for errors in tables.values():
        assert_small(errors, mean=0.1, worst=0.25)
