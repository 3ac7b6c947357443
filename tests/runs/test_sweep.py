"""A sweep gives the same table however it is carried out, and never loses a finished row."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import spmilp
from runs.conftest import CHANNELS, SPM
from runs.small import OPTIONS

CLOCKS = ["seconds"]

pytestmark = pytest.mark.full


def swept(
    files: tuple[Path, Path],
    folder: Path,
    told: Callable[[str], None] = lambda news: None,
    **how: object,
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table, and what was told while it was made."""
    heard: list[str] = []

    def hear(news: str) -> None:
        heard.append(news)
        told(news)

    frame = spmilp.sweep(
        *files, spm=SPM, dma_channels=CHANNELS, folder=folder, on_news=hear, **OPTIONS, **how
    )
    return frame, heard


def assert_same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    assert_frame_equal(one.drop(columns=CLOCKS), other.drop(columns=CLOCKS))


def solved(heard: list[str]) -> list[str]:
    """Return the names of the points that were solved, in order of time."""
    return [news.partition(" rows: ")[2] for news in heard if news.startswith("solving")]


def test_more_memory_or_channels_never_makes_a_row_worse(serial: pd.DataFrame) -> None:
    by_size = serial.set_index(["dma_channels", "spm"])["makespan"]
    for channels in CHANNELS:
        assert by_size[channels].is_monotonic_decreasing
    for spm in (3072, 4096):
        assert by_size[2, spm] <= by_size[1, spm]
    handed = serial[serial["warm_start"] != ""]
    assert set(handed["warm_start"]) <= set(serial["row"])


def test_two_local_workers_give_the_same_table_and_a_second_call_solves_nothing(
    serial: pd.DataFrame, files: tuple[Path, Path], tmp_path: Path
) -> None:
    frame, heard = swept(files, tmp_path, jobs=2)
    assert_same(frame, serial)
    assert sorted(solved(heard)) == sorted(set(solved(heard)))
    assert len(solved(heard)) == len(serial)

    again, nothing = swept(files, tmp_path, jobs=1)
    assert_frame_equal(again, frame)
    assert nothing == []


@pytest.fixture
def scheduler() -> Iterator[str]:
    """Start a scheduler and two workers; give the address."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_workers_of_a_scheduler_are_used_and_a_killed_one_loses_and_repeats_nothing(
    serial: pd.DataFrame, files: tuple[Path, Path], scheduler: str, tmp_path: Path
) -> None:
    from distributed import Client

    killed: list[int] = []

    def kill_one(news: str) -> None:
        if not killed:
            with Client(scheduler, set_as_default=False) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    frame, heard = swept(files, tmp_path, scheduler=scheduler, told=kill_one)
    assert killed
    assert_same(frame, serial)
    assert sorted(solved(heard)) == sorted(set(solved(heard)))
    assert len(solved(heard)) == len(serial)


def test_a_sweep_that_is_killed_goes_on_where_it_was(
    serial: pd.DataFrame, files: tuple[Path, Path], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "spmilp", "sweep", str(files[0]), "-m", str(files[1])]
    command += ["--spm", SPM, "--dma-channels", "1,2", "--solver", str(OPTIONS["solver"])]
    command += ["--jobs", "1", "--time-limit", f"{OPTIONS['time_limit']}s", "-o", str(tmp_path)]
    running = subprocess.Popen(command)
    lines = tmp_path / "rows.jsonl"
    while not lines.exists() or b"\n" not in lines.read_bytes():
        assert running.poll() is None
        time.sleep(0.1)
    running.kill()
    running.wait()
    whole, _, rest = lines.read_bytes().rpartition(b"\n")
    before = whole.split(b"\n")
    lines.write_bytes(whole + b"\n" + (rest or before[0][:50]))  # as if in the middle of a line

    frame, heard = swept(files, tmp_path, jobs=1)
    assert_same(frame, serial)
    assert len(solved(heard)) == len(serial) - len(before)
    assert lines.read_bytes().startswith(whole)


def test_longer_periods_that_are_asked_for_never_have_longer_latencies(
    files: tuple[Path, Path],
) -> None:
    """The second is the makespan of one inference alone, and then some."""
    alone = spmilp.solve(*files, solver="list").makespan
    asked = f"1,{2 * (alone or 0)}"
    frame = spmilp.sweep(*files, period=asked, pareto="period,makespan", solver="list", jobs=1)
    first, second = frame.to_dict("records")
    assert first["period"] == first["objective"] < second["period"] <= second["asked_period"]
    assert second["makespan"] <= first["makespan"]
    assert first["pareto"]
