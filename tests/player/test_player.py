"""Plans that the player runs give the bits of the value replay; no sanitizer finds a fault."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from commands.helpers import in_scheme
from export.subjects import lowered, replayed, two_strips_subject
from spmilp.commands.commands import EventScheme
from spmilp.export.binary import blob_bytes
from spmilp.export.subject import Subject, stamp_of
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.codes import Operation
from spmilp.export.tables.table import Table, Tables
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.pipeline import solve

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
class Planned:
    """A plan for several cores, and what it computes."""

    subject: Subject
    network: Network
    inputs: programs.Arrays
    wanted: programs.Arrays

    def export(self, folder: Path, prefix: str = "spmilp") -> None:
        programs.export_player(
            self.subject.problem, self.subject.plan, self.network, folder, prefix
        )

    def assert_same(self, found: programs.Arrays) -> None:
        for name, values in self.wanted.items():
            np.testing.assert_array_equal(found[name], values)


@cache
def planned(model: str, machine: str) -> Planned:
    """Map a network onto a machine, quickly."""
    path = MODELS / f"{model}.onnx"
    mapped = solve(path, machine, solver="list", time_limit=3.0)
    assert mapped.plan is not None
    network = load_network(path, kinds=mapped.problem.machine.kinds)
    subject = Subject(
        problem=mapped.problem,
        plan=mapped.plan,
        stamp=stamp_of(mapped.problem, mapped.plan),
        network=network,
    )
    inputs, wanted = programs.expected_outputs(mapped.problem, mapped.plan, network, seed=4)
    return Planned(subject, network, inputs, wanted)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a program that plays binary files, for each sanitizer."""
    folder = tmp_path_factory.mktemp("built")
    planned("autoencoder_int8", "cell_be").export(folder)
    return {
        kind: programs.build(folder, "blob", kind, "spmb_play") for kind in ("address", "thread")
    }


def blob(given: Subject, scheme: EventScheme) -> bytes:
    """Return the binary file of a plan with command lists in one scheme."""
    other = replace(given)
    other.__dict__["lists"] = in_scheme(scheme, given.problem, given.plan)
    return blob_bytes(other, all_tables(other))


@needs_gcc
@pytest.mark.parametrize("scheme", list(EventScheme), ids=lambda scheme: scheme.value)
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_threads_and_one_loop_run_a_plan_in_both_schemes_of_events(
    built: dict[str, Path], kind: str, scheme: EventScheme, tmp_path: Path
) -> None:
    given = planned("ds_cnn_int8", "cell_be")
    (tmp_path / "plan.spmb").write_bytes(blob(given.subject, scheme))
    for option in ([], ["--loop"]):
        command = [built[kind], tmp_path / "plan.spmb", *option]
        given.assert_same(programs.play(command, given.network, given.inputs, tmp_path))


@needs_gcc
def test_the_thread_sanitizer_sees_that_waits_are_missing(
    built: dict[str, Path], tmp_path: Path
) -> None:
    given = planned("ds_cnn_int8", "cell_be")
    tables = all_tables(given.subject)
    without = Tables(
        tables=tuple(
            _without_waits(each) if each.layout.table == "commands" else each
            for each in tables.tables
        ),
        words=tables.words,
        texts=tables.texts,
        image=tables.image,
    )
    (tmp_path / "plan.spmb").write_bytes(blob_bytes(given.subject, without))
    command = [built["thread"], tmp_path / "plan.spmb"]
    with pytest.raises(RuntimeError, match="ThreadSanitizer: data race"):
        programs.play(command, given.network, given.inputs, tmp_path)


def _without_waits(commands: Table) -> Table:
    """Return commands whose waits are over at once."""
    rows = tuple(
        (operation, argument, 0 if operation == Operation.WAIT else count)
        for operation, argument, count in commands.rows
    )
    assert rows != commands.rows
    return Table(layout=commands.layout, rows=rows)


@needs_gcc
def test_tables_in_c_run_as_the_binary_file_does(tmp_path: Path) -> None:
    given = planned("autoencoder_int8", "cell_be")
    given.export(tmp_path, prefix="net")
    program = programs.build(tmp_path, "net_play", "address")
    for option in ([], ["--loop"]):
        found = programs.play([program, *option], given.network, given.inputs, tmp_path)
        given.assert_same(found)


@needs_gcc
def test_an_image_that_is_not_in_c_is_linked_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.export.c_text.LARGEST_IMAGE_IN_C", 100)
    given = planned("autoencoder_int8", "cell_be")
    given.export(tmp_path)
    assert not (tmp_path / "spmilp_image.c").exists()
    program = programs.build(tmp_path, "spmilp_play")
    given.assert_same(programs.play([program], given.network, given.inputs, tmp_path))


@needs_arm
def test_bare_metal_on_a_cortex_m3_gives_the_same_bits(tmp_path: Path) -> None:
    given = planned("ds_cnn_int8", "gap8")
    given.export(tmp_path)
    program = programs.build(tmp_path, "mps2", program="spmilp_mps2.elf")
    given.assert_same(programs.play_on_bare_metal(program, given.network, given.inputs, tmp_path))


@needs_gcc
@pytest.mark.parametrize("in_place", [True, False])
def test_halos_and_results_on_the_bytes_of_operands(
    built: dict[str, Path], in_place: bool, tmp_path: Path
) -> None:
    given, inputs = two_strips_subject(in_place)
    assert given.network is not None
    (tmp_path / "plan.spmb").write_bytes(blob_bytes(given, all_tables(given)))
    command = [built["address"], tmp_path / "plan.spmb"]
    found = programs.play(command, given.network, inputs, tmp_path)
    np.testing.assert_allclose(found["z"], replayed(given, inputs)["z"], rtol=1e-5, atol=1e-6)


def with_word(data: bytes, at: int, step: int) -> bytes:
    """Return a file in which a number is greater, and the checksum right again."""
    word = int.from_bytes(data[at : at + 4], "little") + step & 0xFFFFFFFF
    changed = data[:at] + word.to_bytes(4, "little") + data[at + 4 : -4]
    return changed + zlib.crc32(changed).to_bytes(4, "little")


@needs_gcc
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-1], "no whole file"),
        (lambda data: b"SPMX" + data[4:], "no whole file"),
        (lambda data: data[:4] + b"\x09" + data[5:], "another major version"),
        (lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:], "checksum"),
        (lambda data: with_word(data, 144 + 4, 1 << 31), "outside the file"),
        (lambda data: with_word(data, 144 + 4, 4), "does not begin at a multiple of 8"),
    ],
)
def test_a_damaged_file_is_refused(
    built: dict[str, Path], damage: Callable[[bytes], bytes], said: str, tmp_path: Path
) -> None:
    given = planned("ds_cnn_int8", "cell_be")
    data = blob(given.subject, EventScheme.COUNTERS)
    (tmp_path / "plan.spmb").write_bytes(damage(data))
    with pytest.raises(RuntimeError, match=said):
        programs.play(
            [built["address"], tmp_path / "plan.spmb"], given.network, given.inputs, tmp_path
        )


@needs_gcc
def test_what_cannot_be_run_is_said(built: dict[str, Path], tmp_path: Path) -> None:
    given = lowered("ds_cnn_int8", 1, 1)
    assert given.network is not None
    bare = replace(given, network=None)
    (tmp_path / "bare.spmb").write_bytes(blob_bytes(bare, all_tables(bare)))
    (tmp_path / "plan.spmb").write_bytes(blob_bytes(given, all_tables(given)))
    inputs = {name: np.zeros(3, np.float32) for name in given.network.inputs}
    for file, said in (
        ("bare.spmb", "do not say what tasks compute: export them with --model"),
        ("plan.spmb", "input0.bin: 12 B, but the input has 1960 B"),
    ):
        with pytest.raises(RuntimeError, match=said):
            programs.play([built["address"], tmp_path / file], given.network, inputs, tmp_path)
