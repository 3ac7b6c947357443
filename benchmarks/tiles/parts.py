"""What the parts of the search for tile sizes buy: whole solves without each, at equal time.

Usage: python -m benchmarks.tiles.parts [--seconds S] [--jobs N] [--without PART ...]

All runs count their own processor seconds with one worker, so that other work on the machine has no
say in how much is done. *Ratio* is the makespan without the part over that with all parts: above 1,
the part pays.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).parent

ALL = "(all)"
EQUAL = 1e-4
"""Relative difference below which two makespans count as equal."""


def justified_schedules() -> Iterable[Any]:
    """Tilings are compared by schedules as the list scheduler makes them."""
    from spmilp.tile_selection.evaluation import Evaluation

    yield patch.object(Evaluation, "_value_once_opened", lambda _, tiled: tiled.worth)


def small_working_sets() -> Iterable[Any]:
    """Working sets may always take all of a memory."""
    from spmilp.tile_selection import refine

    usual = tuple(one for one in refine.ALTERNATIVES if one.room == 1.0)
    yield patch.object(refine, "ALTERNATIVES", usual)


def fewer_cores() -> Iterable[Any]:
    """Tiles are for all cores."""
    from spmilp.tile_selection import refine

    usual = tuple(one for one in refine.ALTERNATIVES if one.cores == 1.0)
    yield patch.object(refine, "ALTERNATIVES", usual)


def bands() -> Iterable[Any]:
    """Groups whose results do not fit are not fused."""
    from spmilp.tile_selection.refine import _Search

    yield patch.object(_Search, "_fused_on", lambda _, first: {})


def coarse_tiles() -> Iterable[Any]:
    """The tilings of the quickest plans are not among those that are tried."""
    from spmilp.tile_selection import refine

    yield patch.object(refine, "CoarseTilings", lambda *_: ())


def multicasts() -> Iterable[Any]:
    """The list scheduler sends each slice to one memory at a time."""
    from spmilp.solvers.schedule.kernels.run import Runner

    make = Runner.__init__

    def without(self: Runner, *given: Any, **settings: Any) -> None:
        make(self, *given, **{**settings, "multicasts": False})

    yield patch.object(Runner, "__init__", without)


def open_addresses() -> Iterable[Any]:
    """Schedules of the search have addresses, and the solver behind it begins with such."""
    from spmilp.solvers import auto
    from spmilp.solvers.improve import solver
    from spmilp.tile_selection import evaluation

    for module in (auto, solver, evaluation):
        yield patch.object(module, "can_be_open", lambda _: False)


PARTS: dict[str, Callable[[], Iterable[Any]]] = {
    ALL: lambda: (),
    "open addresses": open_addresses,
    "justified schedules": justified_schedules,
    "small working sets": small_working_sets,
    "tiles for fewer cores": fewer_cores,
    "bands": bands,
    "coarse tiles": coarse_tiles,
    "multicasts": multicasts,
}


def main() -> None:
    """Print the makespans of each row as they are found, then a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--without", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--only", nargs="*", default=[""], help="rows whose names begin so")
    parser.add_argument("--suite", default=str(HERE / "parts.yaml"), help="of other rows")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(makespan_without(*given.one, given.suite, given.seconds)))
        return
    from benchmarks.bench.suite import load_suite

    names = [row.name for row in load_suite(given.suite).rows]
    names = [name for name in names if name.startswith(tuple(given.only))]
    parts = list(dict.fromkeys([ALL, *given.without]))
    found: dict[tuple[str, str], int] = {}

    def run(pair: tuple[str, str]) -> None:
        found[pair] = in_a_process(*pair, given.suite, given.seconds)
        print(*pair, found[pair], flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(run, product(names, parts)))
    print_table(names, parts, found)


def in_a_process(row: str, part: str, suite: str, seconds: float) -> int:
    """Return the makespan that a process of its own finds."""
    command = [sys.executable, "-m", "benchmarks.tiles.parts", "--one", row, part]
    limits = ["--suite", suite, "--seconds", str(seconds)]
    ran = subprocess.run([*command, *limits], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{row} without {part}: {ran.stderr[-2000:]}")
    makespan: int = json.loads(ran.stdout.splitlines()[-1])
    return makespan


def makespan_without(row: str, part: str, suite: str, seconds: float) -> int:
    """Return the makespan of a checked plan for a row, found without a part of the search."""
    # Before anything of the package binds them.
    time.monotonic = time.perf_counter = time.process_time
    from benchmarks.ablation import count_processor_time
    from benchmarks.bench.suite import ModelOnMachine, load_suite
    from benchmarks.scaled import load_scaled
    from spmilp.options import DEFAULT_SOLVER
    from spmilp.pipeline import solve
    from spmilp.registry import find_solver

    count_processor_time()
    source = next(one.source for one in load_suite(suite).rows if one.name == row)
    if not isinstance(source, ModelOnMachine):
        raise SystemExit(f"{row}: only networks have tiles to search for")
    machine = load_scaled(source.machine, source.scale)
    find_solver(DEFAULT_SOLVER)  # its libraries are loaded before the clock starts
    with ExitStack() as left_out:
        for one in PARTS[part]():
            left_out.enter_context(one)
        dim = dict(source.dims)
        result = solve(source.model, machine, dim=dim, time_limit=seconds, workers=1)
    if result.makespan is None:
        raise SystemExit(f"{row}: {result.reason}")
    return result.makespan


def print_table(names: list[str], parts: list[str], found: dict[tuple[str, str], int]) -> None:
    """Print the geometric mean of each part's ratios, with its standard error."""
    print("| without | rows | ratio | ± | worse | better | equal |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for part in parts[1:]:
        ratios = [log(found[name, part] / found[name, ALL]) for name in names]
        error = stdev(ratios) / sqrt(len(ratios)) if len(ratios) > 1 else 0.0
        worse, better = sum(r > EQUAL for r in ratios), sum(r < -EQUAL for r in ratios)
        counts = f"{worse} | {better} | {len(ratios) - worse - better}"
        print(f"| {part} | {len(ratios)} | {exp(mean(ratios)):.4f} | {error:.4f} | {counts} |")


if __name__ == "__main__":
    main()
