"""A sweep whose workers and scheduler are killed, against the same sweep row after row.

    python -m benchmarks.sweep.kills --rows 500 --kills 20 -o out/kills

Rows are tiny. After each so many finished rows a worker of Dask's, chosen at random, is ended by
SIGKILL, and once in the middle the process of the scheduler, with everything below it. The script
says how many rows the table has, how many of them were told of twice, and whether the table is that
of ``--jobs 1``. It needs the test files of this repository, and ``spmilp[sweep]``.
"""

import argparse
import random
import sys
from pathlib import Path
from time import monotonic

import pandas as pd
import psutil

import spmilp
from spmilp.runs.sweep import News
from tests.runs.small import write_files

SCHEDULER = "spmilp.processes"
WORKER = "multiprocessing.spawn"


def processes(word: str) -> list[psutil.Process]:
    """Return the processes below this one whose command has a word in it."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any(word in part for part in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue  # it has just ended
    return found


class Killer:
    """Kills workers, and once the scheduler, while rows are finished.

    Parameters
    ----------
    rows, kills
        Of the whole sweep.
    """

    def __init__(self, rows: int, kills: int, seed: int) -> None:
        self._at = {rows * (number + 1) // (kills + 1) for number in range(kills)}
        self._middle = rows // 2
        self._random = random.Random(seed)
        self.names: list[str] = []
        self.workers = self.schedulers = 0

    def hear(self, news: News) -> None:
        """Note a row, and kill what is due."""
        if news.step != "solving" or not news.name:
            return
        self.names.append(news.name)
        if len(self.names) == self._middle:
            for process in processes(SCHEDULER):
                process.kill()
                self.schedulers += 1
        elif len(self.names) in self._at and (workers := processes(WORKER)):
            self._random.choice(workers).kill()
            self.workers += 1


def swept(files: tuple[Path, Path], rows: int, **how: object) -> pd.DataFrame:
    """Return the table of tiny rows, half of them with one DMA channel and half with two."""
    cycles = {"core_kinds.core.launch_cycles": f"1:{rows // 2}:1"}
    return spmilp.sweep(
        *files, dma_channels=[1, 2], fields=cycles, solver="list", time_limit=20.0, **how
    )


def main() -> None:
    """Run both sweeps, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/kills"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    files = write_files(given.output)
    killer, began = Killer(given.rows, given.kills, given.seed), monotonic()
    killed = swept(
        files, given.rows, folder=given.output / "killed", jobs=2, again=True, on_news=killer.hear
    )
    seconds = monotonic() - began
    serial = swept(files, given.rows, folder=given.output / "serial", jobs=1)
    same = killed.drop(columns="seconds").equals(serial.drop(columns="seconds"))
    twice = len(killer.names) - len(set(killer.names))
    print(f"{len(killed)} rows in {seconds:.0f} s, {killer.workers} workers and ", end="")
    print(f"{killer.schedulers} scheduler killed: {twice} rows twice, ", end="")
    print(f"{int(killed['objective'].isna().sum())} without a plan; ", end="")
    print("the table is that of one row after another" if same else "the table is another one")
    sys.exit(0 if same and not twice else 1)


if __name__ == "__main__":
    main()
