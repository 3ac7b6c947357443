"""Exported C of streams: inferences overlap on changing inputs and give the value replay's bits."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.player import programs
from commands.helpers import with_events
from export.test_tables import rows_of
from player.test_player import MODELS, PACKED, STRAIGHT, Form, in_each_form, needs_arm, needs_gcc
from spmilp.checker.values.inputs import random_inputs
from spmilp.checker.values.replay import replay_stream
from spmilp.commands.commands import EventScheme, LoopCommand, LoopWait
from spmilp.export.formats import FORMATS, export
from spmilp.export.subject import Subject
from spmilp.plan.running import rounds_of, running
from spmilp.result import Result
from spmilp.solvers.modulo import stream
from values.test_streams import parts, streamed

SLOW = ("address", "thread")
"""Sanitizers."""


@dataclass(frozen=True)
class Streamed:
    """A stream, and files of inputs and outputs of some inferences."""

    result: Result
    subject: Subject
    inputs: bytes
    outputs: bytes

    def write(self, folder: Path, form: Form = STRAIGHT) -> None:
        form.write(self.subject, folder)
        (folder / "input0.bin").write_bytes(self.inputs)


def made(model: str, machine: str, inferences: int = 6) -> Streamed:
    result = streamed(MODELS / f"{model}.onnx", machine)
    problem, plan, network = parts(result)
    inputs = [random_inputs(network, inference) for inference in range(inferences)]
    runs = running(problem, plan, inferences)
    outputs = replay_stream(runs, network, inputs, [{} for _ in inputs])
    return Streamed(
        result,
        Subject(problem=problem, plan=plan, network=network),
        b"".join(each[name].tobytes() for each in inputs for name in network.inputs),
        b"".join(each[name].tobytes() for each in outputs for name in network.outputs),
    )


@pytest.fixture(scope="module")
def resnet() -> Streamed:
    """Return a stream of which three inferences overlap, with instances on the chip."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "SHARES", (0.5,))
        patch.setattr(stream, "LONGER", (1.1,))
        found = made("resnet8_int8", "stream_quad")
    assert any(each.instances for each in parts(found.result)[1].residencies)
    return found


def play(program: Path, folder: Path, *options: str) -> bytes:
    files = ("input0.bin", "output0.bin")
    subprocess.run([program, *options, *files], cwd=folder, check=True, capture_output=True)
    return (folder / "output0.bin").read_bytes()


@needs_gcc
@in_each_form
@pytest.mark.parametrize(
    "kind", ["plain", *(pytest.param(k, marks=pytest.mark.full) for k in SLOW)]
)
def test_threads_and_one_loop_give_the_bits_of_the_value_replay(
    resnet: Streamed, kind: str, form: Form, tmp_path: Path
) -> None:
    resnet.write(tmp_path, form)
    program = programs.build(tmp_path, form.host, kind)
    for options in ([], ["--loop"])[: 1 if kind == "thread" else 2]:
        assert play(program, tmp_path, *options) == resnet.outputs


@needs_gcc
@pytest.mark.full
def test_events_that_count_to_a_maximum_give_the_same_bits(
    resnet: Streamed, tmp_path: Path
) -> None:
    problem = with_events(resnet.subject.problem, None, 63)
    plan = replace(resnet.subject.plan, problem_sha256="")
    given = replace(resnet, subject=replace(resnet.subject, problem=problem, plan=plan))
    assert given.subject.lists.scheme is EventScheme.SEMAPHORES
    given.write(tmp_path, PACKED)
    for kind, options in (("thread", []), ("plain", ["--loop"])):
        program = programs.build(tmp_path, PACKED.host, kind)
        assert play(program, tmp_path, *options) == resnet.outputs


@needs_gcc
@pytest.mark.full
def test_waits_that_are_left_out_are_caught(
    resnet: Streamed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those for earlier turns: one at a time by other outputs, all by the sanitizer, too.

    In one loop lists go on as far as they can, in the same order each time: without its first such
    wait a list goes too far, unless it comes behind those that it would wait for.
    """
    loop = resnet.subject.loop
    assert loop is not None
    first: dict[int, int] = {}
    for number, mine in enumerate(loop.body):
        for place, wait in enumerate(mine):
            if isinstance(wait, LoopWait) and wait.back:
                first.setdefault(number, place)
    assert len(first) > 5

    def program(body: Iterable[tuple[LoopCommand, ...]], kind: str) -> Path:
        other = replace(resnet.subject)
        other.__dict__["loop"] = replace(loop, body=tuple(body))
        replace(resnet, subject=other).write(tmp_path, PACKED)
        return programs.build(tmp_path, PACKED.host, kind, flags="-O1")

    caught = 0
    for number, place in list(first.items())[:6]:
        body = list(loop.body)
        body[number] = body[number][:place] + body[number][place + 1 :]
        caught += play(program(body, "plain"), tmp_path, "--loop") != resnet.outputs
    assert caught > 1

    monkeypatch.setenv("TSAN_OPTIONS", "halt_on_error=1")
    without = [
        tuple(each for each in mine if not (isinstance(each, LoopWait) and each.back))
        for mine in loop.body
    ]
    racing = program(without, "thread")
    try:
        assert play(racing, tmp_path) != resnet.outputs
    except subprocess.CalledProcessError as error:
        assert b"data race" in error.stderr  # noqa: PT017


@needs_arm
@pytest.mark.full
@in_each_form
def test_bare_metal_on_a_cortex_m3_gives_the_same_bits(form: Form, tmp_path: Path) -> None:
    given = made("ds_cnn_int8", "gap9", 5)
    given.write(tmp_path, form)
    program = programs.build(tmp_path, "mps2", program=form.board)
    subprocess.run([*programs.QEMU, program], cwd=tmp_path, check=True)
    assert (tmp_path / "output0.bin").read_bytes() == given.outputs


def test_tables_and_the_trace_say_prologue_and_loop(resnet: Streamed) -> None:
    subject, (problem, plan, _) = resnet.subject, parts(resnet.result)
    assert plan.stream is not None
    rounds, once = rounds_of(plan, plan.stream), lambda e: e.start < plan.stream.begins
    made = export(subject, [], FORMATS)
    assert [name for name, _ in (*made.left_out, *made.failed)] == ["npe"]
    commands = rows_of({"commands.csv": made.files["commands.csv"]})
    in_loop = Counter(row["operation"] for row in commands if row["turn"] == "1")
    loaded = sum(map(once, plan.transfers))
    assert in_loop["RUN"] == len(problem.tasks)
    assert in_loop["MOVE"] == len(plan.transfers) - loaded
    assert in_loop["HAND_IN"] == in_loop["TAKE"] == 1
    assert {"0", "1", "2"} <= {row["back"] for row in commands}
    moves = rows_of({"dma.csv": made.files["dma.csv"]})
    assert Counter(row["round"] for row in moves if row["last"] == "1") == {
        "": loaded, **{str(n): len(plan.transfers) - loaded for n in range(rounds)}
    }  # fmt: skip
    lying = rows_of({"allocation.csv": made.files["allocation.csv"]})
    assert [len(row["instances"].split()) for row in lying] == [
        len(one.instances) for one in plan.residencies
    ]
    trace = json.loads(made.files["trace.json"])
    begun = {event["name"] for event in trace["traceEvents"] if event.get("cat") == "task"}
    assert "inputs of inference 5" in begun
    assert trace["otherData"]["plan_sha256"] == subject.origin["plan_sha256"]
