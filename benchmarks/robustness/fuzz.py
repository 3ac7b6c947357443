"""What readers do with files that somebody has damaged, or made up to do harm.

Usage: python -m benchmarks.robustness.fuzz FOLDER [--seconds S] [--guided] [--seed N]
           [--only READER ...]

Each reader gets the files of this repository that it is for, changed at random: bytes, tokens and
stretches, or values in the tree of a JSON or YAML file, or fields of an ONNX model. With
``--guided`` (which needs atheris), files that reach new code are changed further; they are kept in
FOLDER, and the next run begins with them. A reader may return something or raise an
``SpmilpError``. Anything else is a finding: another exception, a case of more than ten seconds,
more than 4 GiB, the end of the process. The file of a finding is kept in FOLDER, one of each kind.
Seconds are of processor time.
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from hashlib import sha256
from pathlib import Path
from time import process_time

from benchmarks.robustness.changes import changed
from benchmarks.robustness.options import parser_for
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
    parser = parser_for(__doc__, READERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--guided", action="store_true", help="let new code lead the changes")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print("| reader | seconds | cases | read | refused | findings |\n|---|--:|--:|--:|--:|--:|")
    for name in given.only:
        done = in_processes(name, given.folder, given.seconds, given.seed, given.guided)
        ends = {end: count for end, count in done.items() if end not in NOT_ENDS}
        cases = done["read"] + done["refused"] + sum(ends.values())
        print(
            f"| {name} | {done['seconds']} | {cases} | {done['read']} | {done['refused']} | "
            f"{len(ends)} |",
            flush=True,
        )
        for end, count in ends.items():
            print(f"{name}: {count} x {end}", file=sys.stderr, flush=True)


def in_processes(name: str, folder: Path, seconds: float, seed: int, guided: bool) -> Counter[str]:
    """Try a reader; go on in another process where one ends."""
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        while done["seconds"] < seconds:
            tally = Path(made) / "tally"
            tally.unlink(missing_ok=True)
            left = seconds - done["seconds"]
            if guided:
                code = in_program(name, Path(made), folder, left, seed)
            else:
                code = in_fork(Trials(name, Path(made), folder, left), seed)
            if not tally.exists():
                raise RuntimeError(f"{name}: nothing could be tried")
            done.update(json.loads(tally.read_bytes()))
            if code:
                why = f"the process ended with {code}"
                keep(folder, name, why, why, (Path(made) / "case").read_bytes())
                done[why] += 1
            seed += 1000
    return done


class Trials:
    """What a reader does with cases; the tally is written before each, for whoever goes on."""

    def __init__(self, name: str, made: Path, folder: Path, seconds: float) -> None:
        self.name = name
        self._reader, self._seeds = READERS[name]
        self._made = made
        self._folder = folder
        self._seconds = seconds
        self._done = Counter({"seconds": 0})
        self._began = 0.0

    def begin(self) -> list[bytes]:
        """Set limits on this process, and return files to begin with."""
        beginnings = [data for data in self._seeds() if len(data) <= LARGEST_SEED]
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        signal.signal(signal.SIGPROF, out_of_time)
        self._began = process_time()
        return beginnings

    def over(self) -> bool:
        """Write the tally, and say whether the time is over."""
        spent = process_time() - self._began
        self._done["seconds"] = max(1, round(spent))
        (self._made / "tally").write_text(json.dumps(self._done))
        return spent >= self._seconds

    def one(self, data: bytes) -> None:
        """Let the reader read a case."""
        (self._made / "case").write_bytes(data)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_CASE)
        try:
            self._reader(data, self._made)
            self._done["read"] += 1
        except SpmilpError:
            self._done["refused"] += 1
        except (Exception, OutOfTimeError) as error:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            kind, why = described(error)
            keep(self._folder, self.name, kind, why, data)
            self._done[kind] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)


def in_fork(trials: Trials, seed: int) -> int:
    """Try changed files in another process, and return how it ends."""
    child = os.fork()
    if child == 0:
        try:
            choose = random.Random(f"{trials.name}{seed}")
            beginnings = trials.begin()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            while not trials.over():
                trials.one(changed(choose.choice(beginnings), beginnings, choose))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def in_program(name: str, made: Path, folder: Path, seconds: float, seed: int) -> int:
    """Let new code lead the changes, in a program of its own, and return how it ends."""
    given = [name, str(made), str(folder), str(seconds), str(seed)]
    command = [sys.executable, "-m", "benchmarks.robustness.guided", *given]
    with (folder / f"{name}.log").open("a") as log:
        return subprocess.run(command, check=False, stderr=log).returncode


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
