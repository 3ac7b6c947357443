"""What the formats of C write, and what they refuse."""

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from export.subjects import lowered, subject, with_hostile_names
from player.kernel_network import KernelNetwork, kernel_names, resized, scale_of
from player.test_player import MODELS, needs_gcc, planned
from spmilp.export.bits import HOLES, MOST_GROUPS, Bits, PrefixCode
from spmilp.export.c_text import LARGEST_IMAGE_IN_C
from spmilp.export.codes import ATTRIBUTES, OPERATORS
from spmilp.export.errors import ExportError
from spmilp.export.formats import export
from spmilp.export.packed import MOST_ATTRIBUTES, footprint, packed_files
from spmilp.export.player import INPUTS, RANK, WINDOW_AXES, require_kernels
from spmilp.export.subject import Subject
from spmilp.frontend.load import load_network
from spmilp.frontend.operators.registry import known_kinds
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

FLAGS = (
    *("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"),
    *("-Wstrict-prototypes", "-Wcomment", "-Wtrigraphs", "-Woverlength-strings", "-fsyntax-only"),
)


def subject_of(made: KernelNetwork) -> Subject:
    """Return a subject whose network is another one: enough to ask for kernels."""
    return replace(lowered("ds_cnn_int8", 1, 1), network=made.network())


@pytest.mark.parametrize(
    ("format_", "some"),
    [
        ("player", {"spmilp_plan.c", "spmilp_image.c", "spmilp_main.c", "player.mk"}),
        ("c-code", {"spmilp_code.c", "spmilp_code_core0.c", "spmilp_image.c", "code.mk"}),
    ],
)
def test_a_program_has_its_prefix_everywhere_and_no_mark_is_left(
    format_: str, some: set[str]
) -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    plain = export(given, [format_]).files
    assert some <= set(plain)
    made = export(replace(given, prefix="net"), [format_]).files
    assert len(made) == len(plain)
    for name, content in made.items():
        assert re.search(rb"@[A-Z_]+@", content) is None
        if name.startswith("net_") and name.endswith((".c", ".h")):
            assert b"spmilp_program" not in content
            assert b"SPMILP_PLAN_" not in content


def test_no_file_of_a_plan_has_the_name_of_one_that_all_plans_have() -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    common = set(export(replace(given, prefix="p"), ["player"]).files)
    for prefix in ("spmilp", "spmilp_player"):
        assert len(export(replace(given, prefix=prefix), ["player"]).files) == len(common)


def test_files_that_player_and_code_have_in_common_are_the_same() -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    code, player = (export(given, [name]).files for name in ("c-code", "player"))
    common = set(code) & set(player) - {"export.json"}
    assert {"spmilp_image.c", "spmilp_conv.c", "spmilp_types.h", "spmilp_mps2.ld"} <= common
    assert all(code[name] == player[name] for name in common)


@pytest.mark.parametrize("model", ["ds_cnn_int8", "autoencoder_int8"])
def test_tables_take_a_fifth_of_the_weights_or_16_kb(model: str) -> None:
    taken = footprint(planned(model, "gap8").subject)
    assert taken.tables <= max(16_384, taken.constants // 5)
    assert dict(taken.memories)["dram"] < taken.constants


def test_packed_tables_have_no_name_of_the_model() -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    assert given.network is not None
    named = [name for name in given.network.tensors if len(name) > 6]
    for content in packed_files(given).values():
        assert not [name for name in named if name.encode() in content]


@pytest.mark.parametrize("format_", ["player", "c-code"])
def test_another_weight_changes_the_image_alone(format_: str) -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    assert given.network is not None
    tensors = dict(given.network.tensors)
    name = next(n for n, each in tensors.items() if each.data is not None and each.data.ndim == 4)
    values = tensors[name].data
    assert values is not None
    values = values.copy()
    values.flat[5] ^= 1
    tensors[name] = replace(tensors[name], data=values)
    other = replace(given, network=replace(given.network, tensors=tensors))
    before, after = (export(each, [format_]).files for each in (given, other))
    changed = {file for file in before if before[file] != after[file]}
    assert changed == {"spmilp_image.c", "spmilp_image.bin", "export.json"}


def test_a_large_image_is_a_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    given = lowered("ds_cnn_int8", 5, 1)
    made = packed_files(given)
    assert len(made["spmilp_image.bin"]) <= LARGEST_IMAGE_IN_C
    monkeypatch.setattr("spmilp.export.c_text.LARGEST_IMAGE_IN_C", 100)
    smaller = packed_files(given)
    assert "spmilp_image.c" not in smaller
    assert smaller["spmilp_image.bin"] == made["spmilp_image.bin"]
    assert b".image = _binary_spmilp_image_bin_start" in smaller["spmilp_plan.h"]


@needs_gcc
def test_hostile_names_compile_without_a_warning_as_c_and_as_cpp(tmp_path: Path) -> None:
    given = with_hostile_names(replace(lowered("ds_cnn_int8", 2, 1), prefix="net"))
    made = export(given, ["c-code", "player"])
    made.require_all()
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
        if name.startswith("net_") and not name.endswith(".bin"):
            text = content.decode("ascii")
            assert "??" not in text
            assert '/etc/passwd"' not in text
    sources = [name for name in made.files if re.fullmatch(r"net_(code.*|plan)\.c", name)]
    gcc(tmp_path, "-std=c99", *FLAGS, *(s for s in sources if "mps2" not in s))
    if shutil.which("g++") is not None:
        (tmp_path / "main.cpp").write_text('#include "net_code.h"\n#include "net_plan.h"\n')
        gcc(tmp_path, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "main.cpp")


def gcc(folder: Path, *arguments: str) -> None:
    """Compile in a folder; a failure shows what the compiler says."""
    done = subprocess.run(["gcc", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.full
def test_the_code_on_the_page_is_what_is_written() -> None:
    page = (MODELS.parent / "docs" / "exports.md").read_text()
    shown = re.findall(r"```c\n(.*?)```", page.split("\n## Straight C")[1], flags=re.DOTALL)
    given = replace(planned("ds_cnn_int8", "gap8").subject, prefix="net")
    written = b"".join(export(given, ["c-code"]).files.values()).decode("latin-1")
    assert len(shown) == 2
    assert all(block in written for block in shown)


def test_numbers_that_bits_cannot_express_are_refused_with_what_to_do() -> None:
    Bits().number(2**31 - 1)
    said = r"2147483648 is outside \[0, 2147483647\].*straight C.*--format c-code"
    with pytest.raises(ExportError, match=said):
        Bits().number(2**31)
    many = {0: 1, 1: 1}
    for symbol in range(2, 27):
        many[symbol] = many[symbol - 1] + many[symbol - 2]
    with pytest.raises(ExportError, match=r"a prefix code of 26 bits > 24, .* --format c-code"):
        PrefixCode(Counter(many).elements())


def test_numbers_of_operators_and_attributes_stay_what_they_were() -> None:
    assert (OPERATORS.index("Conv"), OPERATORS.index("Xor")) == (10, 100)
    assert (ATTRIBUTES.index("pads"), ATTRIBUTES.index("value")) == (34, 49)
    assert {kind.upper() for kind in known_kinds()} == kernel_names()


def test_limits_are_those_of_the_sources() -> None:
    folder = files("spmilp.export").joinpath("c")
    headers = ("spmilp_kernels.h", "spmilp_windows.h", "plan/spmilp_packed.h")
    defined = "".join(folder.joinpath(name).read_text() for name in headers)
    for name, value in (
        ("SPMILP_MAX_RANK", RANK),
        ("SPMILP_MAX_INPUTS", INPUTS),
        ("SPMILP_WINDOW_AXES", WINDOW_AXES),
        ("SPMILP_PACKED_HOLES", HOLES),
        ("SPMILP_PACKED_GROUPS", MOST_GROUPS),
        ("SPMILP_PACKED_ATTRIBUTES", MOST_ATTRIBUTES),
    ):
        assert f"#define {name} {value}U\n" in defined


@pytest.mark.full
@pytest.mark.parametrize("model", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_network_of_the_project_can_be_played(model: Path) -> None:
    sizes = {"batch": 1, "sequence": 16} if "bert" in str(model) else {}
    network = load_network(MODELS / str(model), sizes)
    require_kernels(replace(lowered("ds_cnn_int8", 1, 1), network=network), "player")


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
            require_kernels(subject_of(each), "player")


def test_without_the_model_there_is_no_c() -> None:
    bare = replace(lowered("ds_cnn_int8", 1, 1), network=None)
    for format_, said in (
        ("c", "only the model says what runs: add --model"),
        ("player", "player: only the model .* export with --model"),
        ("c-code", "c-code: only the model .* export with --model"),
    ):
        with pytest.raises(ExportError, match=said):
            export(bare, [format_]).require_all()
