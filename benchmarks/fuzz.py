"""What readers do with files that somebody has damaged, or made up to do harm.

Usage: python benchmarks/fuzz.py FOLDER [--seconds S] [--seed N] [--only READER ...]

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
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from time import process_time
from typing import Any

import onnx
import yaml
from google.protobuf.message import Message

import spmilp
from spmilp.bench.read import read_suite
from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.export.binary import parse_binary
from spmilp.frontend.load import load_network
from spmilp.machine.read import load_machine, read_machine
from spmilp.packing.minimalloc import parse_table
from spmilp.plan.read import read_plan
from spmilp.problem.convert.job_shop import read_job_shop
from spmilp.problem.read import problem_from

ROOT = Path(__file__).parents[1]
LONGEST_CASE = 10
"""Seconds."""
MOST_MEMORY = 4 << 30
"""Bytes of address space, most of which the libraries take."""
NOT_ENDS = ("seconds", "read", "refused")
LARGEST_SEED = 200_000
"""Bytes of a file to begin with: smaller ones are changed more often."""

ODD: tuple[Any, ...] = (
    *(None, True, False, "", "x", "NaN", "\ud800", "\0", "1/0", "1/3", [], {}, [[]]),
    *(0, -1, 1, 2, 0.5, 1e308, -0.0, 2**31, 2**32 - 1, 2**48, 2**48 + 1),
    *(2**63 - 1, 2**63, 2**64, 10**30, -(2**63)),
)
MARKS = (
    b"[" * 500,
    b"{" * 500,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"&a [*a]",
    b"!!python/name:os.system",
)
LETTERS = (b"\n", b"\r", b",", b":", b'"', b"#", b"9" * 400, b"1e999", b"NaN", b"-")
TOKENS = [*(json.dumps(value).encode() for value in ODD), *MARKS, *LETTERS]


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
                keep(folder, name, why, (Path(made) / "case").read_bytes())
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
            why = described(error)
            keep(folder, name, why, data)
            done[why] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    done["seconds"] = max(1, round(process_time() - began))
    (made / "tally").write_text(json.dumps(done))


def out_of_time(*_: object) -> None:
    """End a case."""
    raise OutOfTimeError


def described(error: BaseException) -> str:
    """Return the kind of an exception and the line of the package that it comes from."""
    ours = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/spmilp/" in frame.filename
    ]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:120]}"


def keep(folder: Path, name: str, why: str, data: bytes) -> None:
    """Keep the first case of each kind."""
    kind = why.partition(": ")[0]
    file = folder / f"{name}-{sha256(kind.encode()).hexdigest()[:8]}"
    if not file.exists():
        file.write_bytes(data)
        file.with_suffix(".txt").write_text(f"{why}\n")


def changed(data: bytes, others: list[bytes], choose: random.Random) -> bytes:
    """Return a file with a few changes, of its tree where it has one."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [changed_bytes]
    if data[:1] in (b"{", b"["):
        ways += [changed_json] * 3
    elif data[:2] == b"\x08\x08" or b"ir_version" in data[:20] or b"onnx" in data[:200]:
        ways += [changed_model] * 3
    elif b"name:" in data or b"rows:" in data:
        ways += [changed_yaml] * 3
    for _ in range(choose.choice((1, 1, 2, 4))):
        if choose.random() < 0.05:
            other = choose.choice(others)
            data = (
                data[: choose.randrange(len(data) + 1)] + other[choose.randrange(len(other) + 1) :]
            )
        try:
            data = choose.choice(ways)(data, choose)
        except Exception:
            data = changed_bytes(data, choose)
    return data


def changed_bytes(data: bytes, choose: random.Random) -> bytes:
    """Replace, insert or remove some bytes."""
    at = choose.randrange(len(data) + 1)
    to = min(len(data), at + choose.choice((0, 1, 1, 4, 100)))
    random_bytes = bytes(choose.randrange(256) for _ in range(choose.choice((0, 1, 4))))
    return (
        data[:at]
        + choose.choice((random_bytes, choose.choice(TOKENS), data[at:to] * 2))
        + data[to:]
    )


def changed_json(data: bytes, choose: random.Random) -> bytes:
    """Change a value in the tree of a JSON file."""
    return json.dumps(changed_tree(json.loads(data), choose)).encode()


def changed_yaml(data: bytes, choose: random.Random) -> bytes:
    """Change a value in the tree of a YAML file."""
    return yaml.safe_dump(changed_tree(yaml.safe_load(data), choose), sort_keys=False).encode()


def changed_tree(tree: Any, choose: random.Random) -> Any:
    """Replace, remove or repeat a value at a random place, or put one beside it."""
    places = list(places_in(tree))
    parent, key = choose.choice(places)
    what = choose.choice(("odd", "odd", "odd", "near", "remove", "copy"))
    if what == "odd":
        parent[key] = choose.choice(ODD)
    elif what == "near" and isinstance(parent[key], int):
        parent[key] += choose.choice((-1, 1, 1000, -1000))
    elif what == "remove":
        del parent[key]
    else:
        source, name = choose.choice(places)
        value = json.loads(json.dumps(source[name], default=str))
        if isinstance(parent, list):
            parent.insert(key, value)
        else:
            parent[choose.choice((key, str(name)))] = value
    return tree


def places_in(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a tree, as what holds it and the key there."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places_in(tree[key])


def changed_model(data: bytes, choose: random.Random) -> bytes:
    """Change a field of an ONNX model."""
    model = onnx.load_model_from_string(data)
    message: Message = model
    while True:
        set_fields = message.ListFields()
        if not set_fields:
            return data
        field, value = choose.choice(set_fields)
        repeated = hasattr(value, "__len__") and not isinstance(value, str | bytes)
        if field.message_type is not None and choose.random() < 0.95:
            message = choose.choice(value) if repeated else value
            continue
        if choose.random() < 0.2:
            message.ClearField(field.name)
        elif field.message_type is not None:
            value.add().CopyFrom(choose.choice(value)) if repeated else value.Clear()
        elif repeated:
            value.append(odd_like(value[0], choose))
        else:
            setattr(message, field.name, odd_like(value, choose))
        return bytes(model.SerializeToString())


def odd_like(value: Any, choose: random.Random) -> Any:
    """Return an odd value of a type."""
    if isinstance(value, bool | int):
        return choose.choice(
            (0, 1, -1, 2, 7, 13, 99, 2**31 - 1, 2**40, 2**62, value + 1, value - 1)
        )
    if isinstance(value, float):
        return choose.choice((0.0, -1.0, 1e38, float("nan"), float("inf")))
    if isinstance(value, bytes):
        return choose.choice((b"", b"\xff", value[: len(value) // 2], value * 2))
    names = (
        "",
        "x",
        "Relu",
        "Conv",
        "Reshape",
        "Loop",
        "ai.onnx.ml",
        "\n",
        "a" * 1000,
        value + "_",
    )
    return choose.choice(names)


def from_file(read: Callable[[Path], object], ending: str) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that writes them to a file and reads that."""

    def read_bytes(data: bytes, folder: Path) -> object:
        file = folder / f"file{ending}"
        file.write_bytes(data)
        return read(file)

    return read_bytes


def contents(pattern: str, folder: Path = ROOT) -> list[bytes]:
    """Return the content of files."""
    return [path.read_bytes() for path in sorted(folder.glob(pattern))]


def of_pair(folder: Path, name: str) -> list[bytes]:
    """Return a file of a plan that is made for it."""
    with tempfile.TemporaryDirectory() as made:
        spmilp.solve(SMALL, solver="list", time_limit=2).save(made)
        spmilp.read(made).export("bin", made)
        return contents(name, Path(made))


SMALL = ROOT / "instances" / "problems" / "branch-6t-2c-crossbar-nolinks-tight-compute.json"
PROBLEM = spmilp.load_problem(SMALL)
PRESETS = Path(str(files("spmilp.machine") / "presets"))
SUITES = Path(str(files("spmilp.bench") / "suites"))
BUFFERS = b"id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\n"
JOB_SHOP = b"2 3 1\n2 1 1 5 2 1 3 2 4\n1 2 1 6 3 2\n"
KINDS = load_machine("mesh4x4").machine.kinds

READERS: dict[str, tuple[Callable[[bytes, Path], object], Callable[[], list[bytes]]]] = {
    "problem": (
        lambda data, folder: problem_from("case", data),
        partial(contents, "instances/problems/*.json"),
    ),
    "plan": (
        from_file(lambda file: check(PROBLEM, read_plan(file, PROBLEM)), ".json"),
        lambda: of_pair(SMALL, "plan.json"),
    ),
    "machine": (
        lambda data, folder: read_machine(data, "case"),
        partial(contents, "*.yaml", PRESETS),
    ),
    "suite": (
        lambda data, folder: read_suite(data, "case", "case", folder),
        partial(contents, "*.yaml", SUITES),
    ),
    "buffers": (
        lambda data, folder: parse_table(data, "case"),
        lambda: [BUFFERS, *contents("docs/example/*.csv")],
    ),
    "job shop": (from_file(read_job_shop, ".fjs"), lambda: [JOB_SHOP]),
    "binary": (lambda data, folder: parse_binary(data, "case"), lambda: of_pair(SMALL, "*.spmb")),
    "model": (
        from_file(lambda file: load_network(file, {}, KINDS), ".onnx"),
        partial(contents, "models/*.onnx"),
    ),
}

if __name__ == "__main__":
    main()
