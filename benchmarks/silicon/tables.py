"""Measured tables of single reads and of bursts, on Wormhole and Blackhole."""

import csv
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from benchmarks.silicon.chip import Barrier, Chip, Packet, Program, Tile

SINGLE_READS = {
    ("wormhole", "column"): (205, 213, 213, 221, 245, 286, 357, 493, 792, 1381, 2525),
    ("wormhole", "apart"): (293, 301, 301, 309, 333, 366, 437, 581, 880, 1453, 2589),
    ("wormhole", "dram"): (397, 405, 405, 421, 437, 478, 565, 733),
    ("blackhole", "column"): (226, 240, 244, 228, 246, 253, 286, 355, 503, 754, 1300),
    ("blackhole", "apart"): (373, 393, 372, 379, 388, 414, 439, 510, 636, 916, 1457),
    ("blackhole", "dram"): (481, 481, 500, 506, 540, 538, 578, 665),
}
"""Cycles of one read of 64 B, 128 B, ... 64 KiB: from the next tile in the column, from one in
another row and column, from DRAM. tenstorrent/tt-metal, ``noc_latencies.yaml``: ONE_FROM_ONE, one
transaction, not stateful, NoC 1; of DRAM up to 8 KiB, behind which the file repeats the last."""

SOURCES: dict[str, Tile] = {"column": (1, 3), "apart": (2, 3), "dram": (0, 11)}
"""For a reader at (1, 2); the tile of DRAM is that of the first bank."""


def single_reads() -> dict[str, float]:
    """Return the relative errors of single reads."""
    found, chips = {}, {name: Chip(name) for name in ("wormhole", "blackhole")}
    for (name, source), cycles in SINGLE_READS.items():
        chip = chips[name]
        for power, measured in enumerate(cycles):
            read = Packet(1, SOURCES[source], (1, 2), 64 << power, chip.engine.setup)
            found[f"{name} {source} {64 << power}"] = chip.run([[read, Barrier]]) / measured - 1
    return found


def wolfpine() -> dict[str, dict[str, float]] | None:
    """Return the relative errors of wolfpine's tables of bursts; ``None`` if it is not here."""
    try:
        folder = Path(str(distribution("wolfpine").locate_file("framework/perf/datasets")))
    except PackageNotFoundError:
        return None
    chip, found = Chip("blackhole"), dict[str, dict[str, float]]()
    for table in ("nocbench", "nocreadbench", "dramratebench"):
        for path in sorted(folder.glob(f"{table}-blackhole*.csv")):
            rows = csv.DictReader(one for one in path.read_text().splitlines() if one[0] != "#")
            alone = [r for r in rows if r.get("num_src", "1") == r.get("num_readers", "1") == "1"]
            runs, each = defaultdict[str, list[dict[str, str]]](list), float(chip.engine.setup)
            for row in alone:
                runs[f"{path.stem} {row.get('run', row.get('repeat'))} {row['point']}"].append(row)
            if table == "nocreadbench":  # between two packets it looks at counters, too
                bursts = [row for row in alone if row["experiment"] == "burst"]
                times = sorted((int(row["num_tx"]), int(row["cycles"])) for row in bursts)
                each = (times[-1][1] - times[0][1]) / (times[-1][0] - times[0][0])
            for name, flows in runs.items():
                simulated = chip.run([_burst(row, each) for row in flows])
                measured = max(int(row.get("cycles") or row["max_cycles"]) for row in flows)
                found.setdefault(table, {})[name] = simulated / measured - 1
    return found


def _burst(row: dict[str, str], each: float) -> Program:
    """Return a burst between the tiles of a row; to issue a packet takes ``each`` cycles."""
    source, target = SOURCES["dram"], (1, 2)
    if "src0_x" in row:
        source, target = _tile(row, "src0_"), _tile(row, "mst_node_")
    elif "mst_px" in row:
        ends = _tile(row, "mst_p"), _tile(row, "sub_p")
        source, target = ends if row["direction"] == "0" else ends[::-1]
    packet = Packet(0, source, target, int(row["tx_bytes"]), 0)
    return [*(each, packet) * int(row["num_tx"]), Barrier]


def _tile(row: dict[str, str], of: str) -> Tile:
    return int(row[f"{of}x"]), int(row[f"{of}y"])
