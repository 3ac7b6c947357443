"""What readers do with files that somebody has damaged, or made up to do harm.

Usage: python -m benchmarks.robustness.fuzz FOLDER [--seconds S] [--seed N] [--only READER ...]

Each reader gets the files of this repository that it is for, changed at random: bytes, tokens and
stretches, or values in the tree of a JSON or YAML file, or fields of an ONNX model. A reader may
return something or raise an ``SpmilpError``. Anything else is a finding: another exception, a case
of more than ten seconds, more than 4 GiB, the end of the process. The file of a finding is kept in
FOLDER, one of each kind. Seconds are of processor time.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from hashlib import sha256
from pathlib import Path
from time import process_time

from benchmarks.robustness.changes import changed
from benchmarks.robustness.readers import READERS
from spmilp.errors import SpmilpError

LONGEST_CASE = 10
"""Seconds."""
MOST_MEMORY = 4 << 30
"""Bytes of address space, most of which the libraries take."""
NOT_ENDS = ("seconds", "read", "refused")
LARGEST_SEED = 200_000
"""Bytes of a file to begin with: smaller ones are changed more often."""


class OutOfTimeError(BaseException):
    """A case takes too long."""


def main() -> None:
    """Try each reader for a while, in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(READERS), choices=list(READERS))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print("| reader | seconds | cases | read | refused | findings |\n|---|--:|--:|--:|--:|--:|")
    for name in given.only:
        done = in_processes(name, given.folder, given.seconds, given.seed)
        ends = {end: count for end, count in done.items() if end not in NOT_ENDS}
        cases = done["read"] + done["refused"] + sum(ends.values())
        print(
            f"| {name} | {done['seconds']} | {cases} | {done['read']} | {done['refused']} | "
            f"{len(ends)} |",
            flush=True,
        )
        for end, count in ends.items():
            print(f"{name}: {count} x {end}", file=sys.stderr, flush=True)


def in_processes(name: str, folder: Path, seconds: float, seed: int) -> Counter[str]:
    """Try a reader; go on in another process where one ends."""
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        while done["seconds"] < seconds:
            tally = Path(made) / "tally"
            child = os.fork()
            if child == 0:
                try:
                    try_reader(name, Path(made), folder, seconds - done["seconds"], seed)
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            if not tally.exists():
                raise RuntimeError(f"{name}: nothing could be tried")
            done.update(json.loads(tally.read_bytes()))
            if status:
                why = f"the process ended with {os.waitstatus_to_exitcode(status)}"
                keep(folder, name, why, why, (Path(made) / "case").read_bytes())
                done[why] += 1
            seed += 1000
    return done


def try_reader(name: str, made: Path, folder: Path, seconds: float, seed: int) -> None:
    """Try changed files for some seconds; the tally is written before each, for whoever goes on."""
    reader, seeds = READERS[name]
    choose, done = random.Random(f"{name}{seed}"), Counter({"seconds": 0})
    beginnings = [data for data in seeds() if len(data) <= LARGEST_SEED]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGPROF, out_of_time)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    began = process_time()
    while process_time() - began < seconds:
        data = changed(choose.choice(beginnings), beginnings, choose)
        done["seconds"] = max(1, round(process_time() - began))
        (made / "tally").write_text(json.dumps(done))
        (made / "case").write_bytes(data)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_CASE)
        try:
            reader(data, made)
            done["read"] += 1
        except SpmilpError:
            done["refused"] += 1
        except (Exception, OutOfTimeError) as error:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            kind, why = described(error)
            keep(folder, name, kind, why, data)
            done[kind] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    done["seconds"] = max(1, round(process_time() - began))
    (made / "tally").write_text(json.dumps(done))


def out_of_time(*_: object) -> None:
    """End a case."""
    raise OutOfTimeError


def described(error: BaseException) -> tuple[str, str]:
    """Return an exception's kind, with the line of ours that it comes from, and its message."""
    ours = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/spmilp/" in frame.filename
    ]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {where}", str(error)[:200]


def keep(folder: Path, name: str, kind: str, why: str, data: bytes) -> None:
    """Keep the first case of each kind."""
    file = folder / f"{name}-{sha256(kind.encode()).hexdigest()[:8]}"
    if not file.exists():
        file.write_bytes(data)
        file.with_suffix(".txt").write_text(f"{kind}\n{why}\n")


if __name__ == "__main__":
    main()
