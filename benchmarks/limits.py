"""Whether `--time-limit` holds: `spmilp solve` on pairs of a network and a preset.

Usage: python benchmarks/limits.py FILE.csv [--limit 10s] [--networks N ...] [--machines M ...]
           [--pairs NETWORK@MACHINE ...] [--budget 40m] [--jobs 2] [--processor-time] [--table]

Each pair is solved by a process of its own into a temporary folder, and appends a row to FILE.csv;
`finish` is what checking and writing the plan took in it. Pairs that are in the file are not run
again, so that a run can be stopped and resumed. `--jobs` solves so many pairs at a time: no more
than there are cores that nothing else uses. Without `--pairs` the order is spread over networks
and machines. `--table` prints the summary of FILE.csv in Markdown instead.

With `--processor-time` all clocks of the solving process count its processor time, so that other
work on the machine does not count: with one worker that is what its time would be on an idle
machine, but for waiting. The limit is then judged by `cpu`.

A limit of T seconds holds when the process ends within T + max(2 s, 5 %) and the time for checking
and writing, with a plan that the checker accepts. A network that cannot run on a machine (exit
codes 3 and 4) counts by itself.
"""

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from time import perf_counter

import pandas as pd

from spmilp.frontend.find import LIGHT_PREFIX, light_models
from spmilp.machine.read import list_presets
from spmilp.quantities import duration

MODELS = Path(__file__).parents[1] / "models"
DIMS = {"bert_tiny_f32": {"batch": 1, "sequence": 64}}
COLUMNS = (
    *("network", "machine", "limit", "clock", "exit_code", "valid", "wall", "cpu", "finish"),
    "peak_mib",
    *("tasks", "transfers", "objective", "bound", "load", "message"),
)
IMPOSSIBLE = (3, 4)
COMMAND = "from spmilp.cli.main import main; main()"
PROCESSOR_TIME = "import time; time.perf_counter = time.monotonic = time.process_time; "
Row = dict[str, object]


def all_networks() -> list[str]:
    """Return the models of the repository, and the graphs of the onnx package."""
    return [path.stem for path in sorted(MODELS.glob("*.onnx"))] + [
        LIGHT_PREFIX + name for name in light_models()
    ]


def solved(network: str, machine: str, limit: float, *, of_processor: bool) -> Row:
    """Solve a pair, and return its row."""
    model = network if network.startswith(LIGHT_PREFIX) else str(MODELS / f"{network}.onnx")
    sizes = DIMS.get(network, {})
    dims = [text for name, size in sizes.items() for text in ("--dim", f"{name}={size}")]
    with tempfile.TemporaryDirectory() as folder:
        prelude = PROCESSOR_TIME if of_processor else ""
        command = [sys.executable, "-c", prelude + COMMAND, "solve", model]
        command += [
            "--machine",
            machine,
            "--time-limit",
            f"{limit}s",
            "--workers",
            "1",
            "-o",
            folder,
            "--json",
            *dims,
        ]
        load, began = os.getloadavg()[0], perf_counter()
        # Not Popen.communicate: the usage of this very child is asked for.
        with Path(folder, "out").open("wb") as out, Path(folder, "err").open("wb") as err:
            child = subprocess.Popen(command, stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        row: Row = {
            "network": network,
            "machine": machine,
            "limit": limit,
            "clock": "processor" if of_processor else "wall",
            "exit_code": child.returncode,
            "wall": round(perf_counter() - began, 2),
            "cpu": round(usage.ru_utime + usage.ru_stime, 2),
            "peak_mib": usage.ru_maxrss // 1024,
            "load": round(load, 1),
        }
        said = Path(folder, "err").read_text(errors="replace").strip()
        row["message"] = said.partition("\n")[0][:200]
        return row | figures(Path(folder))


def figures(folder: Path) -> Row:
    """Return what a run says of its plan."""
    if not Path(folder, "plan.json").exists():
        return {"valid": "", "finish": 0.0}
    answer = json.loads(Path(folder, "out").read_text())
    names = ("tasks", "transfers", "objective", "bound")
    finish = answer["seconds_to_check"] + answer["seconds_to_write"]
    figures: Row = {name: answer[name] for name in names}
    return figures | {"valid": answer["checked"], "finish": round(finish, 2)}


def pairs(networks: Iterable[str], machines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield all pairs, spread."""
    machines = list(machines)
    found = [(network, machine) for network in networks for machine in machines]
    random.Random(0).shuffle(found)
    yield from found


def rows_of(file: Path) -> pd.DataFrame:
    """Return the rows so far, with whether the limit held and by how much it did not."""
    frame = pd.read_csv(file)
    grace = frame["limit"].mul(0.05).clip(lower=2.0)
    frame["possible"] = ~frame["exit_code"].isin(IMPOSSIBLE)
    frame["over"] = frame["cpu"].where(frame["clock"] == "processor", frame["wall"])
    frame["over"] -= frame["limit"]
    frame["late"] = frame["over"] - grace - frame["finish"]
    frame["holds"] = (frame["late"] <= 0) & (frame["valid"].astype(str) == "True")
    return frame


def summary(frame: pd.DataFrame) -> str:
    """Return the tables: of all pairs by limit, and of those that do not hold."""
    lines = [
        "| limit | pairs | cannot run | hold | with checking and writing within the limit "
        "| worst overrun | peak memory | processor time, mean | load, mean |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (limit, clock), all_rows in frame.groupby(["limit", "clock"]):
        some = all_rows[all_rows["possible"]]
        in_all = int((some["over"] <= max(2.0, 0.05 * float(str(limit)))).sum())
        lines.append(
            f"| {float(str(limit)):g} s of {clock} time "
            f"| {len(all_rows)} | {len(all_rows) - len(some)} "
            f"| {int(some['holds'].sum())} of {len(some)} | {in_all} "
            f"| {some['over'].max():.1f} s | {int(some['peak_mib'].max()):,} MiB "
            f"| {some['cpu'].mean():.1f} s | {all_rows['load'].mean():.1f} |"
        )
    lines += [
        "",
        "| network | machine | limit | wall | processor | check and write | tasks | transfers "
        "| peak | valid |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    bad = frame[frame["possible"] & (~frame["holds"] | (frame["peak_mib"] >= 2048))]
    for row in bad.sort_values("late", ascending=False).to_dict("records"):
        counts = [f"{int(row[name]):,}" if row[name] == row[name] else "" for name in COUNTS]
        lines.append(
            f"| {row['network']} | {row['machine']} | {row['limit']:g} s | {row['wall']:.1f} s "
            f"| {row['cpu']:.1f} s | {row['finish']:.1f} s | {counts[0]} | {counts[1]} "
            f"| {int(row['peak_mib']):,} MiB | {row['valid']} |"
        )
    return "\n".join(lines)


COUNTS = ("tasks", "transfers")


def main() -> None:
    """Run what is missing, or print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=duration, default=10.0)
    parser.add_argument("--networks", nargs="+", default=all_networks())
    parser.add_argument("--machines", nargs="+", default=list_presets())
    parser.add_argument("--pairs", nargs="+")
    parser.add_argument("--budget", type=duration, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        print(summary(rows_of(given.file)))
        return
    known: set[tuple[str, str]] = set()
    if given.file.exists():
        before = pd.read_csv(given.file)
        clock = "processor" if given.processor_time else "wall"
        before = before[(before["limit"] == given.limit) & (before["clock"] == clock)]
        known = set(zip(before["network"], before["machine"], strict=True))
    wanted = pairs(given.networks, given.machines)
    if given.pairs:
        wanted = (tuple(pair.rsplit("@", 1)) for pair in given.pairs)
    began, lock = perf_counter(), Lock()
    with given.file.open("a", newline="") as table, ThreadPoolExecutor(given.jobs) as pool:
        writer = csv.DictWriter(table, COLUMNS)
        if table.tell() == 0:
            writer.writeheader()

        def run(pair: tuple[str, str]) -> None:
            if perf_counter() - began > given.budget:
                return
            row = solved(*pair, given.limit, of_processor=given.processor_time)
            with lock:
                writer.writerow(row)
                table.flush()
                print(*(row.get(name, "") for name in COLUMNS), flush=True)

        # All answers are asked for, so that an exception is seen.
        list(pool.map(run, (pair for pair in wanted if pair not in known)))


if __name__ == "__main__":
    main()
