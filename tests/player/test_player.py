"""Exported C gives the bits of the value replay, packed and straight, under sanitizers."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from commands.helpers import commands_as, with_latency
from export.subjects import replayed, subject, two_strips_subject
from lowering.unet import write_int8_unet
from player.kernel_network import integer_network, kernel_names, onnx_network
from spmilp.checker.values.replay import replay
from spmilp.commands.commands import CommandLists, EventScheme
from spmilp.export.packed import footprint
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.lowering.lower import lower
from spmilp.pipeline import solve
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

MODELS = Path(__file__).parents[2] / "models"

needs_gcc = pytest.mark.skipif(
    bool(programs.missing(programs.HOST_TOOLS)),
    reason=f"not installed: {', '.join(programs.missing(programs.HOST_TOOLS))}",
)
needs_arm = pytest.mark.skipif(
    bool(programs.missing(programs.ARM_TOOLS)),
    reason=f"not installed: {', '.join(programs.missing(programs.ARM_TOOLS))}",
)


@dataclass(frozen=True)
class Form:
    """How a plan becomes C, and the names of its programs."""

    write: Callable[[Subject, Path], None]
    host: str
    board: str


PACKED = Form(programs.write_player, "spmilp_play", "spmilp_mps2.elf")
STRAIGHT = Form(programs.write_code, "spmilp_code_play", "spmilp_code_mps2.elf")
in_each_form = pytest.mark.parametrize("form", [PACKED, STRAIGHT], ids=["packed", "straight"])


@dataclass(frozen=True)
class Planned:
    """A plan for several cores, and what it computes."""

    subject: Subject
    network: Network
    inputs: programs.Arrays
    wanted: programs.Arrays

    def with_lists(self, lists: CommandLists) -> Subject:
        other = replace(self.subject)
        other.__dict__["lists"] = lists
        return other

    def assert_same(self, found: programs.Arrays) -> None:
        for name, values in self.wanted.items():
            np.testing.assert_array_equal(found[name], values)


@cache
def planned(model: str | Path, machine: str) -> Planned:
    """Map a network, of the project or of a file, onto a machine, quickly."""
    path = MODELS / f"{model}.onnx" if isinstance(model, str) else model
    mapped = solve(path, machine, solver="list", tiles="first")
    assert mapped.plan is not None
    network = load_network(path, machine=mapped.problem.machine)
    given = Subject(problem=mapped.problem, plan=mapped.plan, network=network)
    inputs, wanted = programs.expected_outputs(mapped.problem, mapped.plan, network, seed=4)
    return Planned(given, network, inputs, wanted)


@needs_gcc
@pytest.mark.full
@in_each_form
@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("address", EventScheme.SEMAPHORES), ("thread", EventScheme.COUNTERS)],
    ids=["address sanitizer, semaphores", "thread sanitizer, counters"],
)
def test_threads_and_one_loop_give_the_bits_of_the_value_replay(
    form: Form, kind: str, scheme: EventScheme, tmp_path: Path
) -> None:
    given = planned("ds_cnn_int8", "cell_be")
    pipelined = with_latency(given.subject.problem, pipelined=True)  # lists wait for themselves
    lists = commands_as(scheme, pipelined, given.subject.plan)
    form.write(given.with_lists(lists), tmp_path)
    program = programs.build(tmp_path, form.host, kind)
    for option in ([], ["--loop"]):
        given.assert_same(programs.play([program, *option], given.network, given.inputs, tmp_path))


@needs_gcc
@pytest.mark.full
@in_each_form
def test_an_int8_unet_computes_in_the_scratch_of_its_tasks(form: Form, tmp_path: Path) -> None:
    given = planned(write_int8_unet(tmp_path / "unet.onnx"), "gap9")
    assert footprint(given.subject).workspace == 0
    form.write(given.subject, tmp_path)
    program = programs.build(tmp_path, form.host, "address")
    given.assert_same(programs.play([program], given.network, given.inputs, tmp_path))


@needs_gcc
@pytest.mark.full
@in_each_form
def test_an_image_that_is_not_in_c_is_linked_from_its_file(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.export.sources.LARGEST_IMAGE_IN_C", 100)
    given = planned("autoencoder_int8", "cell_be")
    form.write(given.subject, tmp_path)
    assert not (tmp_path / "spmilp_image.c").exists()
    program = programs.build(tmp_path, form.host)
    given.assert_same(programs.play([program], given.network, given.inputs, tmp_path))


@needs_arm
@pytest.mark.full
@in_each_form
def test_bare_metal_on_a_cortex_m3_gives_the_same_bits(form: Form, tmp_path: Path) -> None:
    given = planned("ds_cnn_int8", "gap8")
    form.write(given.subject, tmp_path)
    program = programs.build(tmp_path, "mps2", program=form.board)
    given.assert_same(programs.play_on_bare_metal(program, given.network, given.inputs, tmp_path))
    if form is PACKED:
        assert_footprint(given.subject, program)


def assert_footprint(given: Subject, program: Path) -> None:
    """Check that a program's tables take what the footprint says."""
    taken = footprint(given)
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-S", program], capture_output=True, text=True, check=True
    )
    rows = [row.split() for row in symbols.stdout.splitlines()]
    sizes = {row[3]: int(row[1], 16) for row in rows if len(row) == 4}
    own = [name for name in sizes if name.startswith("spmilp_plan_")] + ["tables"]
    assert sizes["spmilp_plan_image"] == taken.constants
    assert sum(sizes[name] for name in own) == taken.constants + taken.tables
    memories = [size for name, size in sizes.items() if name.startswith("memory")]
    assert sum(memories) - 8 * len(memories) <= sum(used for _, used in taken.memories)


@needs_gcc
@pytest.mark.full
@pytest.mark.parametrize(("form", "in_place"), [(PACKED, True), (STRAIGHT, False)])
def test_halos_and_results_on_the_bytes_of_operands(
    form: Form, in_place: bool, tmp_path: Path
) -> None:
    given, inputs = two_strips_subject(in_place)
    assert given.network is not None
    form.write(given, tmp_path)
    program = programs.build(tmp_path, form.host, "address")
    found = programs.play([program], given.network, inputs, tmp_path)
    np.testing.assert_allclose(found["z"], replayed(given, inputs)["z"], rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def of_onnx(tmp_path_factory: pytest.TempPathFactory) -> tuple[Network, programs.Arrays]:
    return onnx_network(tmp_path_factory.mktemp("cases"))


@needs_gcc
@pytest.mark.full
@pytest.mark.parametrize(("form", "pieces"), [(PACKED, 1), (PACKED, 3), (STRAIGHT, 3)])
def test_kernels_of_integers_give_the_bits_of_the_value_replay(
    pieces: int, form: Form, tmp_path: Path
) -> None:
    assert_kernels(*integer_network(), pieces, form, tmp_path, 0.0)


@needs_gcc
@pytest.mark.full
@in_each_form
def test_kernels_give_the_numbers_of_the_value_replay_on_the_cases_of_onnx(
    of_onnx: tuple[Network, programs.Arrays], form: Form, tmp_path: Path
) -> None:
    assert_kernels(*of_onnx, 3, form, tmp_path, 3e-6)


def assert_kernels(
    network: Network,
    inputs: programs.Arrays,
    pieces: int,
    form: Form,
    folder: Path,
    tolerance: float,
) -> None:
    """Check what kernels compute, floats with the rounding of sums as large as the result."""
    problem = lower(network, MACHINE, cut(network, pieces, pieces))
    plan = sequential_plan(problem)
    given = subject(problem, plan, network=network)
    assert footprint(given).workspace == 0
    form.write(given, folder)
    program = programs.build(folder, form.host, "address")
    found = programs.play([program, "--loop"], network, inputs, folder)
    for name, wanted in replay(problem, plan, network, inputs).items():
        finite = np.abs(wanted[np.isfinite(wanted)])
        near = tolerance if wanted.dtype.kind == "f" else 0.0
        scale = max(1.0, float(finite.max(initial=0)))
        np.testing.assert_allclose(found[name], wanted, near, near * scale, err_msg=name)


@pytest.mark.full
def test_each_kernel_is_tried(of_onnx: tuple[Network, programs.Arrays]) -> None:
    tried = {
        operator.kind.upper()
        for network in (integer_network()[0], of_onnx[0])
        for group in network.groups
        for operator in group.operators
    }
    assert kernel_names() == tried
