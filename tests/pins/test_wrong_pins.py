"""Wrong pins name what they contradict; names, files and problems of another form are refused."""

from pathlib import Path

import pytest
import yaml

from spmilp.errors import FileError, PinError
from spmilp.formats import MOST_BYTES
from spmilp.machine.machine import Machine
from spmilp.machine.read import read_machine
from spmilp.pipeline import problem_of
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.file import problem_bytes, read_problem, write_problem
from spmilp.problem.named_pins import read_pins, with_pins
from spmilp.problem.problem import Problem

MACHINE = b"""
name: two kinds
topology: {type: crossbar, rate_bytes_per_cycle: 8, latency_cycles: 1}
core_kinds: {matrix: {}, vector: {}}
scratchpads:
  - name: a
    size_bytes: 512
    alignment_bytes: 16
    reserved_byte_ranges: [[0, 64]]
    cores: {matrix: 2}
    dma: [{reaches: [dram], rate_bytes_per_cycle: 4}]
  - name: b
    size_bytes: 256
    alignment_bytes: 16
    cores: {vector: 1}
    dma: [{reaches: [dram], rate_bytes_per_cycle: 4}]
dram: [{sites: [xbar], rate_bytes_per_cycle: 8}]
"""


def machine() -> Machine:
    """Return a machine of two matrix cores with one scratchpad and a vector core with another."""
    return read_machine(MACHINE, "test").machine


def problem() -> Problem:
    """Return three tasks in a row, of which the first needs a matrix core."""
    b = ProblemBuilder(machine(), name="row")
    x, w = b.input("x", (64,), "int8"), b.weight("w", (64,), "int8")
    y = b.task("first", reads=[x, w], writes=("y", (64,), "int8"), cycles={"matrix": 30})
    z = b.task("second", reads=[y], writes=("z", (320,), "int8"), cycles=20)
    b.output(b.task("third", reads=[z, w], writes=("o", (16,), "int8"), cycles=10))
    return b.build()


CORES = [core.name for core in machine().cores]
FIRST = "task: first, cores: matrix_0"
MATRIX = "it can run on matrix_0, matrix_1 only"

WRONG = [
    ("tasks: [{task: frist, cores: matrix_0}]", "no task or group frist; did you mean first?"),
    ("tasks: [{task: first, cores: core9}]", "no core core9"),
    ("buffers: [{buffer: y, memory: dram}]", "no scratchpad or shared memory dram"),
    ("buffers: [{buffer: v, memory: a}]", "no buffer or tensor v"),
    ("forbid_cores: [matrix_0, matrix_1, vector]", "first: it must not run on matrix_0, matrix_1,"),
    ("forbid_cores: [matrix_0, matrix_1]", f"first: {MATRIX}, and it must not run on matrix_0, ma"),
    ("tasks: [{task: first, cores: vector}]", f"first: {MATRIX}, and it is pinned to vector"),
    (
        f"tasks: [{{{FIRST}}}, {{task: first, cores: matrix_1}}]",
        "task first is pinned to matrix_0, and to matrix_1",
    ),
    (
        "tasks: [{task: first, not_before: 100}, {task: third, not_after: 150}]",
        "by cycle 150, but with what has to run before it, and not_before of pins, it ends at 160",
    ),
    ("buffers: [{buffer: y, memory: b}]", f"first: {MATRIX}, and buffer y is pinned to b"),
    (
        "buffers: [{buffer: y, memory: a}, {buffer: y, memory: b}]",
        "buffer y is pinned to a, and to b",
    ),
    (
        "buffers: [{buffer: z, memory: b}]",
        "buffer z is pinned to b, and needs 320 B > 256 B, the longest free stretch",
    ),
    (
        "buffers: [{buffer: y, memory: a, address: 72}]",
        "at [72, 136), which is no multiple of its alignment of 16 B",
    ),
    ("buffers: [{buffer: y, memory: a, address: 496}]", "at [496, 560), but it ends at 512"),
    ("buffers: [{buffer: y, memory: a, address: 32}]", "at [32, 96), of which [0, 64) is reserved"),
    ("buffers: [{buffer: o, memory: a, resident: true}]", "but no task reads it"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_wrong_pins_name_both_sides(text: str, said: str) -> None:
    with pytest.raises(PinError) as error:
        with_pins(problem(), read_pins(yaml.safe_load(text)))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "expected the fields of pins"),
        ("tasks: [{task: a}]", "expected cores, not_before or not_after"),
        ("tasks: [{task: a, not_before: 5, not_after: 5}]", "not_before 5 >= not_after 5"),
        ("tasks: [{task: a, not_before: 1.0}]", "tasks.0.not_before: "),
        ("buffers: [{buffer: a}]", "buffers.0.memory: is missing"),
        ("tiles: [{group: a, tiles: 1xx2}]", "tiles.0.tiles: "),
        ("tasks: [{task: a, core: b}]", "tasks.0.core: unknown field; did you mean cores?"),
        ("tasks: [{task: a, cores: b, cores: c}]", "the field cores is given twice"),
        ("#" * (MOST_BYTES + 1), "expected at most"),
        (r'tasks: [{task: "a\udfff", cores: b}]', "surrogates not allowed"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "pins.yaml"
    file.write_text(text)
    with pytest.raises(FileError) as error:
        read_pins(file)
    assert said in str(error.value)


def test_rows_about_one_task_hold_together_and_those_in_the_problem_stay(tmp_path: Path) -> None:
    one = with_pins(problem(), read_pins({"tasks": [{"task": "second", "cores": CORES[1:]}]}))
    rows = [{"task": "s*", "cores": CORES[:2]}, {"task": "second", "not_before": 50}]
    write_problem(one, tmp_path / "problem.json")
    both = with_pins(read_problem(tmp_path / "problem.json"), read_pins({"tasks": rows}))
    (pin,) = both.pins.tasks
    assert (pin.cores, pin.not_before) == ((1,), 50)


def test_a_problem_says_nothing_of_pins_that_it_does_not_have(tmp_path: Path) -> None:
    free, file = problem(), tmp_path / "problem.json"
    assert '"pins"' not in problem_bytes(free).decode()
    pinned = with_pins(
        free,
        read_pins(
            {
                "forbid_cores": CORES[0],
                "tasks": [{"task": "third", "not_before": 3, "not_after": 4000}],
                "buffers": [{"buffer": "y", "memory": "a", "address": 64, "resident": True}],
            }
        ),
    )
    write_problem(pinned, file)
    assert read_problem(file) == pinned


TILES: list[tuple[dict[str, str], str]] = [
    ({"group": "Conv_3", "tiles": "1x4x4"}, "3 counts, but its output is 1x16x32x32"),
    ({"group": "Conv_3", "tiles": "1x32x1x1"}, "32 tiles along axis 1, which has 16 elements"),
    ({"group": "Conv_3", "tiles": "1x0x1x1"}, "counts must be positive"),
    ({"group": "Conv_3", "tiles": "1x1x1x1/999"}, "999 parts of a reduction of"),
    ({"group": "Conf_3", "tiles": "1"}, "there is no group Conf_3; did you mean Conv_3"),
    ({"group": "Conv_3", "tiles": "1x1x1x1"}, "tiles 1x1x1x1 of group Conv_3: task Conv_3: needs"),
]


@pytest.mark.parametrize(("row", "said"), TILES)
def test_wrong_tiles_are_refused(row: dict[str, str], said: str) -> None:
    with pytest.raises(PinError) as error:
        problem_of("models/resnet8_int8.onnx", "epiphany3", pins={"tiles": [row]})
    assert said in str(error.value)
