"""The commands that are disturbed, what they are given, and what may be found in their folders."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import spmilp
from spmilp.bench.folder import read_runs
from spmilp.bench.records import Records
from spmilp.errors import SpmilpError
from spmilp.files import sha256_of

ROOT = Path(__file__).parents[2]
PROBLEMS = ROOT / "instances" / "problems"
OLD, NEW = (
    PROBLEMS / f"{name}.json"
    for name in (
        "residual-24t-4c-mesh2x2-verytight-balanced",
        "gated-129t-16c-mesh4x4-tight-balanced",
    )
)
SUITE = """\
description: Two problems for trials of faults.
time_limit_seconds: 1
workers: 1
solvers: [list]
rows: [{{problem: {}}}, {{problem: {}}}]
"""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A command, the folder that it writes, and what may be found there."""

    name: str
    command: list[str]
    prepare: Callable[[Path], object]
    """Makes what an earlier run has left."""
    state: Callable[[Path], str]
    """Returns a word for the files of a folder; raises if they are not whole."""
    expected: frozenset[str]
    """Names that may be in the folder."""
    seconds: float = 0.0
    """That the command takes when nothing disturbs it."""


def all_verbs(base: Path) -> Iterator[Verb]:
    """Yield the commands; what they read is made here."""
    pairs = {name: base / name for name in ("old", "new")}
    for name, problem in (("old", OLD), ("new", NEW)):
        spmilp.solve(problem, solver="list", time_limit=2).save(pairs[name])
    yield Verb(
        name="solve",
        command=["solve", str(NEW), "--solver", "search", "--time-limit", "1s", "--json"],
        prepare=lambda folder: spmilp.read(pairs["old"]).save(folder),
        state=state_of_pair,
        expected=frozenset({"problem.json", "plan.json"}),
    )
    formats = ("csv", "c", "bin", "dma", "minimalloc", "perfetto")
    for name, pair in pairs.items():
        spmilp.read(pair).export(formats, base / f"export-{name}")
    names = {path.name for path in (base / "export-old").iterdir()}
    names |= {path.name for path in (base / "export-new").iterdir()}
    yield Verb(
        name="export",
        command=["export", str(pairs["new"]), *(f"--format={name}" for name in formats), "--json"],
        prepare=lambda folder: spmilp.read(pairs["old"]).export(formats, folder),
        state=partial(state_of_export, sha256_of(pairs["new"] / "plan.json")),
        expected=frozenset(names),
    )
    suite = base / "suite.yaml"
    suite.write_text(SUITE.format(OLD, NEW))
    kept = base / "bench-old"
    first_row = ["bench", str(suite), "--only", OLD.stem, "-o", str(kept)]
    subprocess.run([sys.executable, "-m", "spmilp", *first_row], check=True, capture_output=True)
    yield Verb(
        name="bench",
        command=["bench", str(suite), "--json"],
        prepare=partial(copy_files, kept),
        state=state_of_bench,
        expected=frozenset(path.name for path in kept.iterdir()),
    )


WEIGHTS = (6, 3, 1)
"""How often each verb is chosen; ``bench`` takes several times as long as the others."""


def copy_files(source: Path, folder: Path) -> None:
    """Copy the files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())


def state_of_pair(folder: Path) -> str:
    """Return whose plan is in a folder, which the checker must accept."""
    found = spmilp.read(folder)
    if found.plan is None:
        raise SpmilpError(f"the plan is not valid: {found.reason}")
    return "new" if found.problem == spmilp.load_problem(NEW) else "old"


def state_of_export(new_plan: str, folder: Path) -> str:
    """Return whose files are in a folder; each must have the hash that their manifest says."""
    manifest = json.loads((folder / "export.json").read_bytes())
    for entry in manifest["files"]:
        if sha256_of(folder / entry["file"]) != entry["sha256"]:
            raise SpmilpError(f"{entry['file']} is not that of the manifest")
    return "new" if manifest["plan_sha256"] == new_plan else "old"


def state_of_bench(folder: Path) -> str:
    """Return whether new runs are in a folder; those of before must be there still."""
    instances = {record.instance for record in Records(folder)}
    if not any(OLD.stem in instance for instance in instances):
        raise SpmilpError("a record has been lost")
    read_runs(folder)
    with (folder / "runs.csv").open(newline="") as file:
        rows = {row["instance"] for row in csv.DictReader(file)}
    if not rows <= instances:
        raise SpmilpError("runs.csv has runs without records")
    return "new" if len(instances) > 1 else "old"


def timed(verb: Verb, base: Path) -> Verb:
    """Run the command undisturbed, and note how long it takes."""
    folder = base / f"timed-{verb.name}"
    verb.prepare(folder)
    began = time.monotonic()
    done = subprocess.run(started_with(verb, folder), check=False, capture_output=True)
    if done.returncode or verb.state(folder) != "new":
        raise RuntimeError(f"{verb.name} fails undisturbed: {done.stderr.decode()}")
    return Verb(**{**vars(verb), "seconds": time.monotonic() - began})


def started_with(verb: Verb, folder: Path) -> list[str]:
    """Return the command with its folder."""
    return [sys.executable, "-m", "spmilp", *verb.command, "-o", str(folder)]
