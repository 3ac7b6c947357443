"""What ``--format player`` writes, and what it refuses."""

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import spmilp
from cli.running import MODELS
from export.subjects import lowered, subject
from player.kernel_network import KernelNetwork, kernel_names, resized, scale_of
from spmilp.export.errors import ExportError
from spmilp.export.formats import export
from spmilp.export.player.kernels import INPUTS, RANK, WINDOW_AXES, require_kernels
from spmilp.export.request import ExportRequest, export_plan
from spmilp.export.subject import Profile, Subject
from spmilp.frontend.load import load_network
from spmilp.frontend.operators.registry import known_kinds
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut


def subject_of(made: KernelNetwork) -> Subject:
    """Return a subject whose network is another one: enough to ask for kernels."""
    return replace(lowered("ds_cnn_int8", 1, 1), network=made.network())


def test_the_player_comes_with_the_tables_that_it_runs() -> None:
    made = export(lowered("ds_cnn_int8", 2, 1), ["player"])
    assert {"spmilp_plan.c", "spmilp_image.c", "spmilp_main.c", "player.mk"} <= set(made.files)
    for content in made.files.values():
        assert re.search(rb"@[A-Z_]+@", content) is None


def exported(model: Path, profile: Profile) -> dict[str, bytes]:
    """Return the C files of a network on gap8, solved anew."""
    found = spmilp.solve(model, "gap8", solver="list", time_limit=None)
    assert found.plan is not None
    asked = ExportRequest(wanted=("player",), model=model, dims={}, profile=profile)
    return dict(export_plan(found.problem, found.plan, asked).files)


@pytest.mark.parametrize("profile", list(Profile))
def test_another_value_of_a_weight_changes_the_image_alone(
    profile: Profile, tmp_path: Path
) -> None:
    model = onnx.load(MODELS / "autoencoder_int8.onnx")
    weight = next(each for each in model.graph.initializer if len(each.dims) == 2)
    values = numpy_helper.to_array(weight).copy()
    values[3, 5] ^= 1
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(model, tmp_path / "autoencoder_int8.onnx")
    before = exported(MODELS / "autoencoder_int8.onnx", profile)
    after = exported(tmp_path / "autoencoder_int8.onnx", profile)
    changed = {name for name in before if before[name] != after[name]}
    assert before.keys() == after.keys()
    assert changed == {"spmilp_image.bin", "spmilp_image.c", "export.json"}


def test_no_file_of_a_plan_has_the_name_of_one_that_all_plans_have() -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    common = set(export(replace(given, prefix="p"), ["player"]).files)
    for prefix in ("spmilp", "spmb", "spmilp_blob", "spmilp_player"):
        own = export(replace(given, prefix=prefix), ["player"]).files
        assert len(own) == len(common)


def test_a_program_has_its_prefix_everywhere() -> None:
    made = export(replace(lowered("ds_cnn_int8", 2, 1), prefix="net"), ["player"])
    for name, content in made.files.items():
        if name.startswith("net_") and name.endswith((".c", ".h")):
            assert b"spmilp_program" not in content
            assert b"SPMILP_PLAN_" not in content


def test_limits_are_those_of_the_sources() -> None:
    folder = files("spmilp.export.player").joinpath("c")
    defined = "".join(
        folder.joinpath(f"spmilp_{name}.h").read_text() for name in ("kernels", "windows")
    )
    for name, value in (
        ("SPMILP_MAX_RANK", RANK),
        ("SPMILP_MAX_INPUTS", INPUTS),
        ("SPMILP_WINDOW_AXES", WINDOW_AXES),
    ):
        assert f"#define {name} {value}U\n" in defined


@pytest.mark.parametrize("model", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_network_of_the_project_can_be_played(model: Path) -> None:
    sizes = {"batch": 1, "sequence": 16} if "bert" in str(model) else {}
    network = load_network(MODELS / str(model), sizes)
    require_kernels(replace(lowered("ds_cnn_int8", 1, 1), network=network))


def test_every_operator_that_the_front_end_reads_has_a_kernel() -> None:
    assert kernel_names() == {kind.upper() for kind in known_kinds()}


def test_elements_that_kernels_cannot_compute_with_are_named_or_the_player_left_out() -> None:
    made = KernelNetwork()
    made.add("Transpose", (np.zeros((3, 4), np.float64),), {"perm": (1, 0)})
    problem = lower(made.network(), MACHINE, cut(made.network(), 1, 1))
    given = subject(problem, sequential_plan(problem), network=made.network())
    said = "operator 0 Transpose (Transpose): kernels do not compute with elements of type float64"
    with pytest.raises(ExportError, match=re.escape(said)):
        export(given, ["player"]).require_all()
    rest = export(given, [], ["c", "player"])
    assert "spmilp_plan.c" in rest.files
    assert "player.mk" not in rest.files
    assert said in rest.left_out[0][1]


def test_types_ranks_and_scales_beyond_the_kernels_are_named() -> None:
    cases = []
    for kind, arrays, attributes, said in (
        ("Relu", (np.zeros(3, np.float64),), {}, "elements of type float64"),
        ("Relu", (np.zeros((1,) * 9, np.float32),), {}, "9 axes > 8"),
        ("MatMul", (np.zeros((3, 3), np.int32),) * 2, {}, "not with elements of type int32"),
        ("Resize", (np.zeros((3, 3), np.int32),), resized((6, 6), (3, 3)), "not with elements of"),
    ):
        made = KernelNetwork()
        made.add(kind, arrays, attributes)
        cases.append((made, said))
    made = KernelNetwork()
    scale = scale_of([0.1, 0.2, 0.3], axis=1)
    made.add("Softmax", (made.integers(2, 3),), {"axis": 1}, scales=(scale,), output=scale_of(0.1))
    cases.append((made, "input 0 has more than one scale"))
    for each, said in cases:
        with pytest.raises(ExportError, match=said):
            require_kernels(subject_of(each))


def test_without_a_model_there_is_no_player() -> None:
    with pytest.raises(ExportError, match="export with --model"):
        require_kernels(replace(lowered("ds_cnn_int8", 1, 1), network=None))
