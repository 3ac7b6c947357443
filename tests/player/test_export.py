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

from export.subjects import lowered, with_hostile_names
from player.kernel_network import KernelNetwork, kernel_names, resized, scale_of
from player.test_player import MODELS, needs_gcc, planned
from spmilp.export.bits import HOLES, MOST_GROUPS, PrefixCode, number
from spmilp.export.codes import ATTRIBUTES, OPERATORS, RANK, WINDOW_AXES, require_kernels
from spmilp.export.errors import ExportError
from spmilp.export.formats import export
from spmilp.export.packed import footprint
from spmilp.frontend.load import load_network
from spmilp.frontend.operators.registry import known_kinds

FLAGS = (
    *("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"),
    *("-Wstrict-prototypes", "-Wcomment", "-Wtrigraphs", "-Woverlength-strings", "-fsyntax-only"),
)


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


@pytest.mark.parametrize("model", ["ds_cnn_int8", "autoencoder_int8"])
def test_tables_take_a_fifth_of_the_weights_or_16_kb(model: str) -> None:
    taken = footprint(planned(model, "gap8").subject)
    assert taken.tables <= max(16_384, taken.constants // 5)
    assert dict(taken.memories)["dram"] < taken.constants


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
    shown = shown[:2]  # the third is of a stream
    assert all(block in written for block in shown)


def test_numbers_that_bits_cannot_express_are_refused_with_what_to_do() -> None:
    number(2**31 - 1)
    said = r"2147483648 is outside \[0, 2147483647\].*straight C.*--format c-code"
    with pytest.raises(ExportError, match=said):
        number(2**31)
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
        ("SPMILP_WINDOW_AXES", WINDOW_AXES),
        ("SPMILP_PACKED_HOLES", HOLES),
        ("SPMILP_PACKED_GROUPS", MOST_GROUPS),
    ):
        assert f"#define {name} {value}U\n" in defined


@pytest.mark.full
@pytest.mark.parametrize("model", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_network_of_the_project_can_be_played(model: Path) -> None:
    sizes = {"batch": 1, "sequence": 16} if "bert" in str(model) else {}
    require_kernels(load_network(MODELS / str(model), sizes))


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
            require_kernels(each.network())
