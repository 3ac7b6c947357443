"""Problems by names: what is built, and what is said of mistakes."""

from collections.abc import Callable
from typing import Any

import pytest

import spmilp
from spmilp.problem.builder import Data, ProblemBuilder
from spmilp.problem.problem import BufferKind

MACHINE = spmilp.load_machine("mesh4x4")


@pytest.fixture
def b() -> ProblemBuilder:
    return ProblemBuilder(MACHINE, name="hand")


def of(b: ProblemBuilder, name: str) -> Data:
    """Return data that was added before."""
    return b._data[name]


def started(b: ProblemBuilder) -> ProblemBuilder:
    """Add an input ``x``, a weight ``w`` and a task ``t`` that writes ``y``."""
    x, w = b.input("x", (16, 64)), b.weight("w", (64, 64), "int8")
    b.task("t", reads=[x, w], writes=("y", (16, 64), "int32"), cycles=5)
    return b


def test_parts_that_are_read_are_slices_each_once(b: ProblemBuilder) -> None:
    x = b.input("x", (4, 6, 8), "float16")
    parts = [x[0:2, :, 2:4], x[0:2, 0:6, 2:4], x[3], x]
    for number, part in enumerate(parts):
        b.output(b.task(f"t{number}", reads=part, writes=(f"y{number}", 8, "int8"), cycles=1))
    problem = b.build()

    reads = [problem.slices[task.reads[0]] for task in problem.tasks]
    assert [(each.start, each.extent, each.bytes) for each in reads] == [
        ((0, 0, 2), (2, 6, 2), 48),
        ((0, 0, 2), (2, 6, 2), 48),
        ((3, 0, 0), (1, 6, 8), 96),
        ((0, 0, 0), (4, 6, 8), 384),
    ]
    assert len(problem.slices) == len(problem.buffers) + 2


def test_tiles_of_an_output_lie_at_their_places(b: ProblemBuilder) -> None:
    x = b.input("x", (4, 6))
    for row in range(2):
        y = b.task(f"t{row}", reads=[x], writes=(f"y{row}", (2, 6), "int32"), cycles=1)
        b.output(y, tensor=("y", (4, 6)), at=(2 * row, 0))
    problem = b.build()

    whole = next(tensor for tensor in problem.tensors if tensor.name == "y")
    places = [each.place for each in problem.buffers if each.name.startswith("y")]
    assert (whole.shape, whole.item, whole.kind) == ((4, 6), 4, BufferKind.OUTPUT)
    assert [place and (place.tensor, place.start) for place in places] == [
        (whole.index, (0, 0)),
        (whole.index, (2, 0)),
    ]


def test_partial_sums_take_the_place_of_those_before(b: ProblemBuilder) -> None:
    x = b.input("x", (2, 64))
    first = b.task("k0", reads=[x], writes=("s0", (2, 8), "int32"), cycles=3, partial=True)
    last = b.task(
        "k1",
        reads=[x, first],
        writes=("s1", (2, 8), "int32"),
        cycles=3,
        in_place=[(first, "s1")],
        scratch=16,
    )
    b.output(last)
    problem = b.build()

    one, other = problem.tasks
    assert other.in_place == ((one.writes[0], other.writes[0]),)
    assert (one.scratch, other.scratch) == (0, 16)
    assert problem.buffers[one.writes[0]].kind is BufferKind.PARTIAL
    answer = spmilp.solve(problem, solver="list")
    assert answer.plan is not None
    assert answer.peak_spm is not None


def test_a_task_may_write_several_buffers_and_follow_others(b: ProblemBuilder) -> None:
    x = b.input("x", 8)
    wide, narrow = b.task(
        "split", reads=x, writes=[("a", 8, "int8"), ("c", (2, 2), "bool")], cycles=2
    )
    b.task("idle", cycles=1, after="split")
    b.task("read", reads=[wide, narrow, x], cycles=1, after="idle", energy={"core": 7})
    problem = b.build()

    assert [task.after for task in problem.tasks] == [(), (0,), (1,)]
    assert problem.tasks[2].energy == (7,)
    assert problem.buffers[problem.tasks[0].writes[1]].bytes == 4


def test_kinds_of_cores_have_cycles_of_their_own() -> None:
    b = ProblemBuilder("stream_quad")
    x = b.input("x", 8)
    b.output(b.task("t", reads=[x], writes=("y", 8, "int8"), cycles={"tpu": 3, "simd": 9}))
    problem = b.build()

    kinds = [kind.name for kind in problem.machine.kinds]
    assert dict(zip(kinds, problem.tasks[0].cycles, strict=True)) == {
        "tpu": 3,
        "pooling": None,
        "simd": 9,
    }


def test_weights_may_lie_in_a_scratchpad(b: ProblemBuilder) -> None:
    w = b.weight("w", 64, memory="spm_0_0")
    b.output(b.task("t", reads=[w], writes=("y", 8, "int8"), cycles=1))
    problem = b.build()

    buffer = problem.buffers[0]
    assert buffer.starts_in is not None
    assert problem.machine.memories[buffer.starts_in].name == "spm_0_0"
    assert (buffer.place, buffer.kind) == (None, BufferKind.WEIGHT)


def test_the_machine_and_the_objective_are_those_asked_for() -> None:
    small = MACHINE.replace(spm="64KiB")
    b = started(ProblemBuilder(small, objective="peak_spm"))
    b.output(of(b, "y"))
    problem = b.build()

    assert problem.machine == small.machine
    assert problem.objective.first == "peak_spm"
    assert problem.sources == (("machine", small.sha256),)
    assert problem.name == "problem on mesh4x4-spm64KiB"


SMALL = ("z", 4, "int8")
WHOLE = (16, 64)
"""The shape of x and y."""


def in_place(b: ProblemBuilder, read: str, into: str) -> Any:
    return b.task("u", reads=of(b, "x"), writes=SMALL, cycles=1, in_place=[(of(b, read), into)])


def two_tiles(b: ProblemBuilder, shape: tuple[int, int], other: tuple[int, int], at: int) -> Any:
    """Put y and a second tile into tensors of one name."""
    b.task("u", reads=of(b, "y"), writes=("z", WHOLE, "int32"), cycles=1)
    b.output(of(b, "y"), tensor=("whole", shape))
    b.output(of(b, "z"), tensor=("whole", other), at=(at, 0))
    b.build()


MISTAKES: list[tuple[Callable[[ProblemBuilder], Any], str]] = [
    (lambda b: b.weight("x", 8), "data x: there is one of this name already"),
    (lambda b: b.task("t", cycles=1), "task t: there is one of this name"),
    (lambda b: b.input("", 8), "data '': expected a name"),
    (lambda b: b.input("z", 8, "int7"), "z: dtype 'int7'; there are bool, int8"),
    (lambda b: b.input("z", (4, 0)), "z: axis 1 has 0 elements, expected 1 or more"),
    (lambda b: b.input("z", 8, memory="dran"), "no memory 'dran'; did you mean dram?"),
    (lambda b: b.task("u", reads=["x"], cycles=1), "task u: there is no data 'x'"),
    (lambda b: of(b, "x")[0:17], r"x: along axis 0 \[0, 17\), which is \[0, 16\)"),
    (lambda b: of(b, "x")[0:8:2], "x: along axis 0 a step of 2, expected 1"),
    (lambda b: of(b, "x")[0, 0, 0], "x: 3 slices, but 2 axes"),
    (lambda b: b.task("u", cycles=0), "task u: cycles 0 on core, expected 1 or more"),
    (lambda b: b.task("u", cycles={"gpu": 3}), "task u: cycles on 'gpu'; mesh4x4 has core"),
    (
        lambda b: b.task("u", reads=[of(b, "x"), of(b, "x")[0:16]], cycles=1),
        "task u: reads x twice",
    ),
    (lambda b: b.task("u", cycles=1, after="tt"), "after 'tt', no such task"),
    (lambda b: in_place(b, "y", "z"), "task u: in place of y, which it does not read"),
    (lambda b: in_place(b, "x", "y"), "task u: in place 'y', which it does not write"),
    (lambda b: in_place(b, "x", "z"), "task u: z of 4 B in place of x of 1024 B"),
    (lambda b: b.output(of(b, "x")), "output x: no task writes it"),
    (lambda b: (b.output(of(b, "y")), b.output(of(b, "y"))), "output y: is an output already"),
    (lambda b: b.output(of(b, "y")[0:8]), r"y\[0:8, 0:64\] is a part"),
    (
        lambda b: b.output(of(b, "y"), tensor=("z", (20, 64)), at=(8, 0)),
        r"output y: \[8, 24\) along axis 0 of z, which is \[0, 20\)",
    ),
    (lambda b: b.build(), "y: no task reads it, and it is no output"),
    (lambda b: two_tiles(b, (20, 64), (20, 64), 4), "y and z overlap in the tensor whole"),
    (
        lambda b: two_tiles(b, WHOLE, (32, 64), 16),
        r"z: shape \(32, 64\) in whole, which has \(16, 64\)",
    ),
]


@pytest.mark.parametrize(("make", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_named_with_both_numbers(
    b: ProblemBuilder, make: Callable[[ProblemBuilder], Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        make(started(b))


def test_a_problem_without_tasks_is_refused(b: ProblemBuilder) -> None:
    with pytest.raises(ValueError, match="hand: has no task"):
        b.build()
    with pytest.raises(ValueError, match="objective speed: there are makespan"):
        ProblemBuilder(MACHINE, objective="speed")


def test_greedy_rules_spread_the_tiles_of_an_operator_over_cores() -> None:
    builder = ProblemBuilder("mesh4x4", name="tiles")
    x = builder.input("x", (64, 64))
    for number in range(16):
        written = (f"y{number}", (4, 32), "int8")
        rows = x[4 * number : 4 * number + 4]
        y = builder.task(f"t{number}", reads=rows, writes=written, cycles=5000, operator="mm")
        builder.output(y)
    problem = builder.build()
    for solver in ("belady", "greedy:round_robin/layer_by_layer", "onsram"):
        plan = spmilp.solve(problem, solver=solver).plan
        assert plan is not None
        assert len({each.core for each in plan.placements}) == 16, solver
