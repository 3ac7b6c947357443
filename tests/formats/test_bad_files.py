"""Whatever a file holds, its reader gives one clear message and never anything else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.worked_example import PLAN, PROBLEM
from spmilp.checker.check import check
from spmilp.errors import FileError
from spmilp.plan.file import plan_bytes, read_plan
from spmilp.problem.file import problem_bytes, read_problem

PROBLEM_JSON = json.loads(problem_bytes(PROBLEM))
PLAN_JSON = json.loads(plan_bytes(PLAN, PROBLEM))

Step = str | int
T = TypeVar("T")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad")


def _changed(document: Any, path: tuple[Step, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    parent = copy
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return copy


def _problem(folder: Path, document: Any) -> str:
    """Return what the reader says of a problem file."""
    (folder / "problem.json").write_text(json.dumps(document))
    with pytest.raises(FileError) as caught:
        read_problem(folder / "problem.json")
    return str(caught.value).removeprefix(f"{folder / 'problem.json'}: ")


def _plan(folder: Path, document: Any) -> str:
    """Return what the reader says of a plan file, read with its problem."""
    (folder / "plan.json").write_text(json.dumps(document))
    with pytest.raises(FileError) as caught:
        read_plan(folder / "plan.json", PROBLEM)
    return str(caught.value).removeprefix(f"{folder / 'plan.json'}: ")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"hello", b"\xef\xbb\xbf{}", b"\xff\xfe\x00", b"[1, 2]", b"null"]
)
@pytest.mark.parametrize("read", [read_problem, read_plan])
def test_what_is_no_json_object_is_no_file_of_ours(
    content: bytes, read: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(FileError, match=r"x\.json: no spmilp-"):
        read(tmp_path / "x.json")


@pytest.mark.parametrize(
    "content",
    [
        b'{"format": "spmilp-plan", "format_version": "2.0", "a": ' + b"[" * 100_000,
        b'{"format": "spmilp-plan", "format_version": "2.0", "a": ' + b"9" * 10_000 + b"}",
        b'{"format": "spmilp-plan", "format_version": "2.0", "tensors": NaN}',
        b'{"format": "spmilp-plan", "format_version": "2.0", "\\ud800": 1}',
    ],
    ids=["deep", "digits", "nan", "surrogate"],
)
def test_hostile_json_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(FileError, match=r"x\.json: "):
        read_plan(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("read", "before", "more", "named"),
    [
        (read_problem, '"objective": [', '"objective": [], ', "'"),
        (read_problem, '"index": 3, ', '"name": "x", ', "'name'"),
        (read_plan, '"index": 3, ', '"start": 0, ', "'start'"),
    ],
)
def test_a_field_that_stands_twice_is_refused(
    read: Callable[[Path], object], before: str, more: str, named: str, tmp_path: Path
) -> None:
    data = problem_bytes(PROBLEM) if read is read_problem else plan_bytes(PLAN, PROBLEM)
    assert before in data.decode()
    (tmp_path / "x.json").write_text(data.decode().replace(before, more + before, 1))
    with pytest.raises(FileError, match=f"an object(| of index 3) has the field {named}"):
        read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("3.0", "3.0 cannot be read; expected 2.x"),
        ("1.1", "1.1 cannot be read; expected 2.x; make the file again: transfers took other time"),
        *((version, "expected major.minor, got ") for version in ("2.00", "2.", "", "2.0.0", "².")),
    ],
)
def test_a_version_is_major_and_minor_and_of_the_same_major(
    version: str, said: str, tmp_path: Path
) -> None:
    found = _problem(tmp_path, PROBLEM_JSON | {"format_version": version})
    assert found.startswith(f"format_version: {said}")
    other = _problem(tmp_path, PLAN_JSON)
    assert other == "format: expected 'spmilp-problem', got 'spmilp-plan'"


def test_what_a_newer_minor_version_adds_is_ignored(tmp_path: Path) -> None:
    newer = _changed(PROBLEM_JSON, ("tasks", 3, "colour"), "red") | {"mood": 1}
    newer["format_version"] = "2.7"
    (tmp_path / "problem.json").write_text(json.dumps(newer))
    assert read_problem(tmp_path / "problem.json") == PROBLEM


BAD_PROBLEMS: list[tuple[tuple[Step, ...], Any, str]] = [
    (("tasks", 0, "cycles", 0), 0, "tasks.0.cycles.0: expected int >= 1; got 0"),
    (("tasks", 0, "cycles", 0), "20", "tasks.0.cycles.0: expected int | null; got '20'"),
    (("tasks", 0, "cycles", 0), 2**60, "tasks.0.cycles.0: expected int <= 281474976710656; got"),
    (("tasks", 0, "cycles"), [5], "task first: cycles for 1 kinds of core"),
    (("tasks", 0, "reads"), [99], "task first: slice 99 does not exist: there are 10"),
    (("tasks", 0, "after"), [4], "the order of the tasks is cyclic"),
    (("tasks", 1, "in_place"), [[0, 4]], "task add: in-place pair (slice 0, buffer 4)"),
    (("tasks",), {}, "tasks: "),
    (("slices", 0, "index"), 12, "slice 12 stands at position 8"),
    (("slices", 0, "bytes"), 33, "slice 8 of x0: 33 B, but its extent holds 32 B"),
    (("slices", 0, "start"), [0, 9], "slice 8 of x0: [9, 17) leaves an axis of 16"),
    (("buffers", 0, "bytes"), 65, "buffers.0.bytes: is 65, but the shape and item give 64"),
    (("buffers", 0, "shape"), [2**40, 2**40], "buffers.0.bytes: the shape and item give"),
    (("buffers", 0, "shape"), [1] * 33, "buffers.0.shape: expected array of length <= 32"),
    (("buffers", 0, "kind"), "snack", "buffers.0.kind: expected one of input, weight, intermedia"),
    (("buffers", 0, "starts_in"), None, "buffer x0: 0 origins"),
    (("buffers", 0, "place"), None, "buffer x0: starts or ends in DRAM, has no place"),
    (("tensors", 0, "memory"), 1, "tensor x: lies in l2, which is shared, not dram"),
    (("machine", "links", 0, "rate"), "1/0", "machine.links.0.rate: "),
    (("machine", "memories", 1, "alignment"), 3, "memory l2: alignment 3 B, no power of 2"),
    (("objective",), ["makespan"] * 2, "objective: makespan, makespan; expected each of makespan"),
]
"""What the conformance suite has refused, with what is said of each kind of mistake."""


@pytest.mark.parametrize(("path", "value", "message"), BAD_PROBLEMS)
def test_a_bad_problem_is_refused(
    path: tuple[Step, ...], value: Any, message: str, tmp_path: Path
) -> None:
    assert _problem(tmp_path, _changed(PROBLEM_JSON, path, value)).startswith(message)


def test_a_field_that_a_plan_does_not_have_is_named(tmp_path: Path) -> None:
    document = _changed(PLAN_JSON, ("transfers", 0, "cycles"), 14)
    assert _plan(tmp_path, document).startswith("transfers.0.cycles: unknown field")


@pytest.mark.parametrize("name", ["unverified", "links", "remote"])
def test_a_machine_says_everything(name: str, tmp_path: Path) -> None:
    document = json.loads(json.dumps(PROBLEM_JSON))
    del document["machine"][name]
    assert _problem(tmp_path, document) == f"machine.{name}: is missing"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.sampled_from([2**48, 2**48 + 1, 2**63, 10**400, -(2**70)]),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-1, 5) | st.none(), max_size=3),
    st.dictionaries(st.sampled_from(["index", "start", "x"]), st.integers(0, 3), max_size=2),
)


@st.composite
def _garbled(draw: st.DrawFn, document: Any) -> Any:
    """A good document with some fields replaced, removed or added anywhere."""
    document = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        parent = document
        while True:
            keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            child = parent[key]
            if not isinstance(child, dict | list) or not draw(st.integers(0, 9)):
                action = draw(st.sampled_from(["replace", "remove", "double"]))
                if action == "remove":
                    del parent[key]
                elif action == "double" and isinstance(parent, list):
                    parent.append(child)
                else:
                    parent[key] = draw(VALUES)
                break
            parent = child
    return document


def _attempt(read: Callable[[], T]) -> tuple[T | None, str]:
    """Return what is read, or what is said of the file."""
    try:
        return read(), ""
    except FileError as error:
        return None, str(error)


@pytest.mark.full
@settings(max_examples=250, deadline=None, derandomize=True)
@given(_garbled(PROBLEM_JSON))
def test_a_garbled_problem_is_read_or_refused_and_nothing_else(folder: Path, document: Any) -> None:
    file = folder / "problem.json"
    file.write_text(json.dumps(document))
    problem, said = _attempt(lambda: read_problem(file))
    assert problem is not None or said.startswith(f"{file}: ")
    if problem is not None:
        check(problem, PLAN)


@pytest.mark.full
@settings(max_examples=250, deadline=None, derandomize=True)
@given(_garbled(PLAN_JSON))
def test_a_garbled_plan_is_read_or_refused_and_nothing_else(folder: Path, document: Any) -> None:
    file = folder / "plan.json"
    file.write_text(json.dumps(document))
    plan, said = _attempt(lambda: read_plan(file, PROBLEM))
    assert plan is not None or said.startswith(f"{file}: ")
    if plan is not None:
        check(PROBLEM, plan)
