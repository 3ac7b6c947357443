"""Compare the simulator, on machine files, with what was measured on chips.

Usage: python -m benchmarks.silicon FOLDER [--each]

FOLDER has traces of kernels from tenstorrent/tt-npe. Prints one JSON object: of `l1` and `dram`,
the kernels that read either on `wormhole`, of single `reads` on `wormhole` and `blackhole`, and of
the tables in the package wolfpine (`null` where it is not installed) how many there are, and mean
and worst of the relative errors' absolute values. `--each` writes every error to stderr. Nothing is
fitted here: issue times are measured, all else is the machine files', with their sources.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from benchmarks.silicon.chip import Barrier, Chip, Packet
from benchmarks.silicon.tables import single_reads, wolfpine

READ, BEGIN, END = "READ", "READ_BARRIER_START", "READ_BARRIER_END"


def error_of(path: Path, chip: Chip) -> float:
    """Return the relative error of the time from a trace's first event to its last barrier's end.

    What stands behind a barrier is issued as long after its end as in the trace.
    """
    events = json.loads(path.read_text())
    begin = min(event["timestamp"] for event in events)
    programs = defaultdict[object, list[Packet | float | None]](list)
    last = defaultdict[object, int](lambda: begin)
    for event in sorted(events, key=lambda event: event["timestamp"]):
        if event.get("type") not in (READ, BEGIN, END):
            continue
        who, now = (event["proc"], event["sx"], event["sy"]), event["timestamp"]
        programs[who].append(Barrier if event["type"] == END else float(now - last[who]))
        last[who] = now
        if event["type"] == READ:
            network, here = int(event["noc"] == "NOC_1"), (event["sx"], event["sy"])
            there, size = (event["dx"], event["dy"]), event["num_bytes"]
            programs[who].append(Packet(network, there, here, size, chip.engine.setup))
    ends = (event["timestamp"] for event in events if event.get("type") == END)
    return chip.run(programs.values()) / float(max(ends) - begin) - 1


def kernels(folder: Path) -> dict[str, dict[str, float]]:
    """Return the relative error of each trace's time, of those that read L1 and those of DRAM."""
    chip, found = Chip("wormhole"), dict[str, dict[str, float]](l1={}, dram={})
    for path in sorted(folder.glob("*.json")):
        found["dram" if path.name.startswith("DRAM") else "l1"][path.stem] = error_of(path, chip)
    return found


def summary(found: dict[str, float], of: str = "points") -> dict[str, float]:
    """Return the number of errors, and mean and worst of their absolute values."""
    sizes = [abs(error) for error in found.values()]
    return {of: len(sizes), "mean": round(fmean(sizes), 4), "worst": round(max(sizes), 4)}


def main() -> None:
    """Print the errors of everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.silicon")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", action="store_true")
    given = parser.parse_args()
    traces = kernels(given.folder)
    if not all(traces.values()):
        parser.error(f"{given.folder}: expected traces of kernels that read L1, and DRAM")
    reads, tables = single_reads(), wolfpine()
    for found in (*traces.values(), reads, *(tables or {}).values()) if given.each else ():
        for name, error in found.items():
            print(f"{error:+8.1%}  {name}", file=sys.stderr)
    named = tables and {name: summary(found) for name, found in tables.items()}
    counted = {name: summary(found, "kernels") for name, found in traces.items()}
    print(json.dumps({**counted, "reads": summary(reads), "wolfpine": named}))


if __name__ == "__main__":
    main()
