"""What the C player does with any inputs, and with files that have been changed, under sanitizers.

Usage: python -m benchmarks.robustness.player FOLDER [--seconds S] [--compiler clang]

Needs clang with libFuzzer. The plans are those of the tests' networks, in which each kernel occurs,
whole and in tiles. Cases that reach new code are kept in FOLDER, and the next run begins with them;
so is the case of a finding. Seconds are of processor time.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.append("tests")
from benchmarks.player.programs import export_player
from benchmarks.robustness.readers import of_pair
from player.kernel_network import integer_network, real_network
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

TARGET = Path(__file__).with_name("fuzz_player.c")
SOURCES = Path(__file__).parents[2] / "spmilp" / "export" / "player" / "c"
NOT_LINKED = {"spmb_play.c", "spmilp_blob.c", "spmilp_packed.c"}
"""Sources with a main function of their own, or that the target includes."""
FLAGS = (
    *("-std=gnu11", "-g", "-O1", "-ffp-contract=off", "-fno-sanitize-recover=all"),
    "-fsanitize=fuzzer,address,undefined",
)


def main() -> int:
    """Export the plans, build the target, and let it run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--compiler", default="clang")
    given = parser.parse_args()
    folder: Path = given.folder.resolve()
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    plans = export_plans(folder, corpus)
    sources = [path for path in SOURCES.glob("*.c") if path.name not in NOT_LINKED]
    program = folder / "fuzz_player"
    include = ["-I", str(SOURCES), "-I", str(plans[0].parent)]  # the types are part of an export
    build = [given.compiler, *FLAGS, *include, str(TARGET), *map(str, sources), "-pthread", "-lm"]
    subprocess.run([*build, "-o", str(program)], check=True)
    setting = {"SPMILP_PLANS": ":".join(map(str, plans)), "SPMILP_SECONDS": str(given.seconds)}
    options = ["-timeout=60", "-rss_limit_mb=2048", "-max_len=400000", "-print_final_stats=1"]
    command = [program, corpus, *options, f"-artifact_prefix={folder}/"]
    with (folder / "log").open("w") as log:
        done = subprocess.run(command, env=os.environ | setting, check=False, stderr=log)
    if done.returncode:
        print(f"a finding: see {folder / 'log'}")
    return done.returncode


def export_plans(folder: Path, corpus: Path) -> list[Path]:
    """Return binary files of plans; inputs of theirs, and two of the files, are the first cases."""
    found = []
    for made in (integer_network, real_network):
        network, inputs = made()
        for pieces in (1, 3):
            problem = lower(network, MACHINE, cut(network, pieces, pieces))
            place = folder / f"{made.__name__}{pieces}"
            export_player(problem, sequential_plan(problem), network, place)
            found.append(place / "plan.spmb")
            packed = b"".join(np.ascontiguousarray(inputs[n]).tobytes() for n in network.inputs)
            (corpus / place.name).write_bytes(bytes([len(found)]) + packed)
    for number, blob in enumerate([*of_pair("*.spmb"), min(map(Path.read_bytes, found), key=len)]):
        (corpus / f"file{number}").write_bytes(b"\0" + blob)
    return found


if __name__ == "__main__":
    sys.exit(main())
