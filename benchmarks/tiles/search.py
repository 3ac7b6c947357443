"""What the search for tile sizes makes of the first choice, on rows of a benchmark suite.

Usage: python -m benchmarks.tiles.search ROW ... [--suite networks] [--seconds S]

The limit is in seconds of the processor, so that other work on the machine does not count; loading
and the first choice come before. The judge's values are printed, and the roofline, which holds
whatever the tiles. With ``PYTHONPATH`` at another checkout it measures that one.
"""

import argparse
from math import exp, log
from statistics import mean
from time import process_time

from benchmarks.bench.suite import ModelOnMachine, load_suite
from benchmarks.scaled import load_scaled
from spmilp.bounds.roofline import roofline
from spmilp.lowering.lower import lower
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.schedule.portfolio import schedules_by
from spmilp.source import load
from spmilp.tile_selection import evaluation
from spmilp.tile_selection.choose import search_tilings
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.settings import SEARCH, TileOptions

NO_LIMIT = 1 << 62


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--suite", default="networks")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    evaluation.monotonic = process_time
    sources = {row.name: row.source for row in load_suite(given.suite).rows}
    print("| row | roofline | first choice | found | found / first | tasks |")
    print("|---|--:|--:|--:|--:|--:|")
    ratios = []
    for name in given.rows:
        ceiling, first, found, tasks = searched(sources[name], given.seconds)
        ratios.append(found / first)
        print(
            f"| {name} | {ceiling} | {first} | {found} | {ratios[-1]:.3f} | {tasks} |", flush=True
        )
    print(f"| geometric mean | | | | {exp(mean(map(log, ratios))):.3f} | |")


def searched(source: object, seconds: float) -> tuple[int, int, int, int]:
    """Return the roofline, the values of the first and the best tiles, and the tasks of these."""
    if not isinstance(source, ModelOnMachine):
        raise SystemExit(f"{source}: only networks have tiles to search for")
    target = load_scaled(source.machine, source.scale)
    network, _ = load(source.model, target, dim=dict(source.dims))
    machine = target.machine
    first = first_choice(network, machine)
    made = schedules_by(lower(network, machine, first.tilings))
    value = min((one.score[0] for one in made), default=None)
    limits, clock = TileOptions(tasks=NO_LIMIT), Clock(seconds / SEARCH.share)
    tiled = search_tilings(first, limits, clock=clock)
    if value is None or tiled.value is None:
        raise SystemExit(f"{network.name} on {machine.name}: no schedule")
    return roofline(network, machine).cycles, value, tiled.value, len(tiled.problem.tasks)


if __name__ == "__main__":
    main()
