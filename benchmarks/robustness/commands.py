"""The commands that are disturbed, what they are given, and what may be found in their folders."""

import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import spmilp
from spmilp.errors import SpmilpError
from spmilp.files import sha256_of
from spmilp.runs.jobs import Store

ROOT = Path(__file__).parents[2]
PROBLEMS = ROOT / "instances" / "problems"
OLD, NEW = (
    PROBLEMS / f"{name}.json"
    for name in (
        "residual-24t-4c-mesh2x2-verytight-balanced",
        "gated-129t-16c-mesh4x4-tight-balanced",
    )
)
MODEL = str(ROOT / "models" / "autoencoder_int8.onnx")


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
    formats = ("csv", "commands", "dma", "perfetto")
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
    common = ["--solver", "list", "--jobs", "1", "--time-limit", "5s"]
    kept = base / "sweep-old"
    one_row = ["sweep", MODEL, "--spm", "64k", *common, "-o", str(kept)]
    subprocess.run([sys.executable, "-m", "spmilp", *one_row], check=True, capture_output=True)
    yield Verb(
        name="sweep",
        command=["sweep", MODEL, "--spm", "64k,128k", *common, "--json"],
        prepare=partial(shutil.copytree, kept, dirs_exist_ok=True),
        state=state_of_sweep,
        expected=frozenset(path.name for path in kept.iterdir()),
    )


WEIGHTS = (6, 3, 1)
"""How often each verb is chosen; ``sweep`` takes several times as long as the others."""


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


def state_of_sweep(folder: Path) -> str:
    """Return whether new rows are in a folder; the one of before must be there, with its plan."""
    store = Store(folder)
    keys = [line["key"] for line in store.lines()]
    if not keys:
        raise SpmilpError("a row has been lost")
    for key in keys:
        if store.find(key) is None or spmilp.read(store.folder_of(key)).plan is None:
            raise SpmilpError(f"row {key} has no plan")
    with (folder / "sweep.csv").open(newline="") as file:
        if not {row["row"] for row in csv.DictReader(file)} <= set(keys):
            raise SpmilpError("sweep.csv has rows that are not kept")
    return "new" if len(keys) > 1 else "old"


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
