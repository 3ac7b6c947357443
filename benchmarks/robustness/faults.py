"""What is left in a folder when a command is killed, interrupted or has no room, at random moments.

Usage: python -m benchmarks.robustness.faults OUT.csv [--trials N] [--seed S] [--only KIND ...]

Each trial lets ``solve``, ``export`` or ``sweep`` write into a folder that holds the files of an
earlier run, and disturbs it. Half of the signals come in the last quarter of the time that the
command takes, in which it checks and writes. Afterwards the files must be all of the earlier run or
all of the new one, and whole; the objective that was printed must be that of the plan in the
folder; the next writer must leave no other files; and the exit code must be a documented one.
OUT.csv has a row for each trial, standard output a table. Full disks and folders that cannot be
written need the right to mount a file system in memory; without it their trials are left out.
"""

import csv
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.robustness.commands import WEIGHTS, Verb, all_verbs, started_with, timed
from benchmarks.robustness.options import parser_for
from spmilp.files import write_atomically

DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 8, 130, 141, 143}
LONGEST = 60
"""Seconds after a disturbance in which a command must end."""
LATE = 0.75
"""Of the time that a command takes; what comes then hits checking and writing."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One command that was disturbed, and what was left."""

    kind: str
    verb: str
    seconds: float
    code: int
    left: str
    """``old``, ``new``, or what has been lost."""
    wrong: str = ""
    """What else is not as it should be; empty when nothing."""


def main() -> None:
    """Run the trials and print the table."""
    parser = parser_for(__doc__, KINDS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--trials", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults") as made:
        base = Path(made)
        verbs = [timed(verb, base) for verb in all_verbs(base)]
        choose = random.Random(given.seed)
        with given.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Trial)])
            writer.writeheader()
            trials = []
            for number in range(given.trials):
                kind = given.only[number % len(given.only)]
                (verb,) = choose.choices(verbs, WEIGHTS)
                trial = KINDS[kind](verb, base / f"trial{number}", choose)
                if trial is not None:
                    trials.append(trial)
                    writer.writerow(vars(trial))
                    file.flush()
    print(table_of(trials))


def start(verb: Verb, folder: Path, **limits: int) -> "subprocess.Popen[bytes]":
    """Start the command in a session of its own, as from a terminal, with limits on resources."""

    def before() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    return subprocess.Popen(
        started_with(verb, folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=before,
    )


def judged(kind: str, verb: Verb, folder: Path, process: "subprocess.Popen[bytes]") -> Trial:
    """Wait for the command and look at what it has left."""
    began = time.monotonic()
    wrong = []
    try:
        out, err = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        wrong.append(f"no end within {LONGEST} s")
    # A signal that comes before Python can handle any ends it; shells add 128.
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    killed = (wrong or kind == "kill -9") and code == 128 + signal.SIGKILL
    if code not in DOCUMENTED and not killed:
        wrong.append(f"exit code {code}: {err.decode(errors='replace')[-200:]}")
    if b"Traceback" in err:
        wrong.append("a traceback")
    try:
        left = verb.state(folder)
    except Exception as error:
        left = f"lost: {type(error).__name__}: {error}"
    else:
        wrong += wrong_answer(verb, folder, out, left)
        if kind != "read-only folder":
            wrong += left_over(verb, folder)
    return Trial(
        kind=kind,
        verb=verb.name,
        seconds=round(time.monotonic() - began, 2),
        code=code,
        left=left,
        wrong="; ".join(wrong),
    )


def wrong_answer(verb: Verb, folder: Path, out: bytes, left: str) -> Iterator[str]:
    """Yield what is wrong with an answer that was printed as a whole."""
    if verb.name != "solve":
        return
    try:
        answer = json.loads(out)
    except ValueError:
        return
    if not answer.get("files"):
        return
    written = json.loads((folder / "plan.json").read_bytes())["solve"]["value"]
    if left != "new" or answer["objective"] != written:
        yield f"printed {answer['objective']}, written {written}"


def left_over(verb: Verb, folder: Path) -> Iterator[str]:
    """Yield files that the next writer leaves there and that nobody asked for."""
    write_atomically(folder / "next", "x")
    names = {path.name for path in folder.iterdir()} - verb.expected - {"next"}
    if names:
        yield f"left over: {', '.join(sorted(names))}"


def with_signals(
    kind: str, numbers: tuple[signal.Signals, ...], verb: Verb, folder: Path, choose: random.Random
) -> Trial:
    """Send signals at random moments; Ctrl-C goes to the whole session, as from a terminal."""
    verb.prepare(folder)
    process = start(verb, folder)
    time.sleep(verb.seconds * choose.uniform(choose.choice((0.0, LATE)), 1.05))
    for number in numbers:
        if process.poll() is None:
            send = os.killpg if number == signal.SIGINT else os.kill
            send(process.pid, number)
            time.sleep(choose.uniform(0.0, 0.5) if len(numbers) > 1 else 0.0)
    return judged(kind, verb, folder, process)


def disk_full(verb: Verb, folder: Path, choose: random.Random) -> Trial | None:
    """Give a disk that has room for the old files and a part of the new ones."""
    verb.prepare(folder.with_name("sizes"))
    size = sum(path.stat().st_size for path in folder.with_name("sizes").iterdir())
    with in_memory(folder, size + choose.randrange(16 << 10, 2 << 20)) as mounted:
        if not mounted:
            return None
        verb.prepare(folder)
        return judged("disk full", verb, folder, start(verb, folder))


def file_too_large(verb: Verb, folder: Path, choose: random.Random) -> Trial:
    """Let writes fail from some byte of a file on, as quotas do."""
    verb.prepare(folder)
    limit = int(10 ** choose.uniform(2, 6))
    return judged("file too large", verb, folder, start(verb, folder, RLIMIT_FSIZE=limit))


def read_only(verb: Verb, folder: Path, choose: random.Random) -> Trial | None:
    """Forbid writing in the folder."""
    with in_memory(folder, 64 << 20) as mounted:
        if not mounted:
            return None
        verb.prepare(folder)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        return judged("read-only folder", verb, folder, start(verb, folder))


def memory_limit(verb: Verb, folder: Path, choose: random.Random) -> Trial:
    """Limit the address space to something between too little and enough."""
    verb.prepare(folder)
    limit = int(choose.uniform(0.3, 4.0) * 2**30)
    return judged("memory limit", verb, folder, start(verb, folder, RLIMIT_AS=limit))


def two_runs(verb: Verb, folder: Path, choose: random.Random) -> Trial:
    """Let two commands write into the folder, and kill one of them half of the time."""
    verb.prepare(folder)
    first = start(verb, folder)
    time.sleep(choose.uniform(0.0, 0.3))
    second = start(verb, folder)
    if choose.random() < 0.5:
        time.sleep(verb.seconds * choose.uniform(LATE, 1.3))
        first.kill()
    first.communicate()
    return judged("two runs", verb, folder, second)


@contextmanager
def in_memory(folder: Path, size: int) -> Iterator[bool]:
    """Mount a file system of some bytes at a folder; False where that is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", str(folder)], check=True)


Disturbance = Callable[[Verb, Path, random.Random], Trial | None]

KINDS: dict[str, Disturbance] = {
    "kill -9": partial(with_signals, "kill -9", (signal.SIGKILL,)),
    "SIGTERM": partial(with_signals, "SIGTERM", (signal.SIGTERM,)),
    "Ctrl-C": partial(with_signals, "Ctrl-C", (signal.SIGINT,)),
    "two Ctrl-C": partial(with_signals, "two Ctrl-C", (signal.SIGINT, signal.SIGINT)),
    "disk full": disk_full,
    "file too large": file_too_large,
    "read-only folder": read_only,
    "memory limit": memory_limit,
    "two runs": two_runs,
}


def table_of(trials: list[Trial]) -> str:
    """Return a row for each kind of disturbance."""
    lines = [
        "| disturbance | trials | old files | new files | lost | otherwise wrong |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind in [*KINDS, "all"]:
        those = [trial for trial in trials if kind in (trial.kind, "all")]
        left: Counter[Any] = Counter(trial.left for trial in those)
        lost = len(those) - left["old"] - left["new"]
        wrong = sum(1 for trial in those if trial.wrong)
        lines.append(
            f"| {kind} | {len(those)} | {left['old']} | {left['new']} | {lost} | {wrong} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
