"""Straight code does what the command lists say, and names of the model cannot steer it."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from export.subjects import HOSTILE, lowered, replayed, subject, two_strips_subject
from export.test_c import FLAGS, gcc
from player.kernel_network import integer_network
from player.test_player import MODELS, needs_arm, needs_gcc, planned
from spmilp.checker.values.replay import replay
from spmilp.commands.build import commands_as
from spmilp.commands.commands import EventScheme
from spmilp.export.errors import ExportError
from spmilp.export.formats import export
from spmilp.export.subject import Profile, Subject
from spmilp.frontend.load import load_network
from spmilp.lowering.lower import lower
from spmilp.pipeline import solve
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut


def without(pattern: str, folder: Path) -> None:
    """Take lines out of the functions of straight code."""
    for file in folder.glob("*_code_*.c"):
        file.write_text(re.sub(rf"^ *{pattern}.*\n", "", file.read_text(), flags=re.M))


@needs_gcc
@pytest.mark.parametrize(
    ("kind", "scheme", "flags"),
    [
        ("address", EventScheme.SEMAPHORES, ""),
        ("thread", EventScheme.COUNTERS, "-DSPMILP_BLOCKING"),
    ],
    ids=["address sanitizer, semaphores, resumed", "thread sanitizer, image linked, blocking"],
)
def test_straight_code_gives_the_bits_of_the_value_replay(
    kind: str, scheme: EventScheme, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flags:
        monkeypatch.setattr("spmilp.export.c_text.LARGEST_IMAGE_IN_C", 100)
    given = planned("ds_cnn_int8", "cell_be")
    lists = commands_as(scheme, given.subject.problem, given.subject.plan)
    other = replace(given.subject)
    other.__dict__["lists"] = lists
    programs.write_code(other, tmp_path)
    program = programs.build(tmp_path, "spmilp_code_play", kind, flags=flags)
    given.assert_same(programs.play([program], given.network, given.inputs, tmp_path))
    in_a_loop = [program, "--loop"]
    if not flags:
        given.assert_same(programs.play(in_a_loop, given.network, given.inputs, tmp_path))
        return
    with pytest.raises(RuntimeError, match="ends with -6"):
        programs.play(in_a_loop, given.network, given.inputs, tmp_path)


@needs_gcc
def test_the_thread_sanitizer_sees_that_waits_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSAN_OPTIONS", "halt_on_error=1")
    given = planned("ds_cnn_int8", "cell_be")
    programs.write_code(given.subject, tmp_path)
    without("SPMILP_WAIT", tmp_path)
    program = programs.build(tmp_path, "spmilp_code_play", "thread")
    with pytest.raises(RuntimeError, match="ThreadSanitizer: data race"):
        programs.play([program], given.network, given.inputs, tmp_path)


@needs_gcc
def test_halos_come_in_time_and_only_because_signals_wait_for_transfers(tmp_path: Path) -> None:
    given, inputs = two_strips_subject()
    assert given.network is not None
    wanted = replayed(given, inputs)["z"]
    programs.write_code(given, tmp_path)
    program = programs.build(tmp_path, "spmilp_code_play", flags="-O0")
    found = programs.play([program], given.network, inputs, tmp_path)["z"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    without("SPMILP_DMA_WAIT", tmp_path)
    program = programs.build(tmp_path, "spmilp_code_play", flags="-O0")
    late = programs.play([program, "--loop"], given.network, inputs, tmp_path)["z"]
    assert not np.allclose(late, wanted)


@needs_arm
def test_bare_metal_on_a_cortex_m3_gives_the_same_bits(tmp_path: Path) -> None:
    given = planned("ds_cnn_int8", "gap8")
    programs.write_code(given.subject, tmp_path)
    program = programs.build(tmp_path, "mps2", program="spmilp_code_mps2.elf")
    given.assert_same(programs.play_on_bare_metal(program, given.network, given.inputs, tmp_path))


@needs_gcc
def test_every_kernel_of_integers_runs_in_tiles(tmp_path: Path) -> None:
    network, inputs = integer_network()
    problem = lower(network, MACHINE, cut(network, 3, 3))
    plan = sequential_plan(problem)
    programs.write_code(subject(problem, plan, network=network), tmp_path)
    program = programs.build(tmp_path, "spmilp_code_play", flags="-O0")
    found = programs.play([program, "--loop"], network, inputs, tmp_path)
    wanted = replay(problem, plan, network, inputs)
    for group in network.groups:
        np.testing.assert_array_equal(found[group.output], wanted[group.output], group.name)


def hostile() -> Subject:
    """Return a plan in which everything has a hostile name, memories too."""
    given = lowered("ds_cnn_int8", 2, 1)
    problem, machine = given.problem, given.problem.machine
    renamed = {memory.name: f"{HOSTILE[memory.index]}" for memory in machine.memories}
    machine = replace(
        machine,
        name=HOSTILE[2],
        memories=tuple(replace(each, name=renamed[each.name]) for each in machine.memories),
        links=tuple(
            replace(each, source=renamed[each.source], target=renamed[each.target])
            for each in machine.links
        ),
        cores=tuple(replace(each, name=HOSTILE[3]) for each in machine.cores),
        engines=tuple(replace(each, name=HOSTILE[4]) for each in machine.engines),
    )
    names = (HOSTILE[index % len(HOSTILE)] for index in range(100_000))
    problem = replace(
        problem,
        name=next(names),
        machine=machine,
        buffers=tuple(replace(each, name=next(names)) for each in problem.buffers),
        tasks=tuple(replace(each, name=next(names)) for each in problem.tasks),
    )
    return subject(problem, given.plan, network=given.network, prefix="net")


@needs_gcc
def test_hostile_names_compile_without_a_warning_as_c_and_as_cpp(tmp_path: Path) -> None:
    programs.write_code(hostile(), tmp_path)
    sources = sorted(file.name for file in tmp_path.glob("net_*.c") if "mps2" not in file.name)
    strict = [flag for flag in FLAGS if flag != "-Wcast-qual"]
    gcc(tmp_path, "-std=c99", *strict, "-fsyntax-only", *sources, "spmilp_straight.c")
    gcc(tmp_path, "-std=c99", *strict, "-DSPMILP_BLOCKING", "-fsyntax-only", *sources)
    for file in tmp_path.glob("net_code*"):
        text = file.read_bytes().decode("ascii")
        assert "??" not in text
        assert '/etc/passwd"' not in text
    if shutil.which("g++") is not None:
        (tmp_path / "main.cpp").write_text('#include "net_code.h"\n')
        gcc(tmp_path, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "main.cpp")


def test_names_of_the_model_stand_in_the_debug_profile_alone() -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    names = [task.name for task in given.problem.tasks]
    shown: dict[Profile, Callable[[str], bool]] = {}
    for profile in Profile:
        made = export(replace(given, profile=profile), ["c-code"])
        shown[profile] = made.files["spmilp_code_core0.c"].decode().__contains__
    assert all(shown[Profile.DEBUG](f"/* task {n}: {name} */") for n, name in enumerate(names))
    assert not any(map(shown[Profile.RELEASE], names))


def test_files_that_player_and_code_have_in_common_are_the_same() -> None:
    given = lowered("ds_cnn_int8", 2, 1)
    code, player = (export(given, [name]).files for name in ("c-code", "player"))
    common = set(code) & set(player) - {"export.json"}
    assert {"spmilp_image.c", "spmilp_conv.c", "spmilp_types.h", "spmilp_mps2.ld"} <= common
    assert all(code[name] == player[name] for name in common)


def test_without_the_model_there_is_no_code() -> None:
    bare = replace(lowered("ds_cnn_int8", 1, 1), network=None)
    with pytest.raises(ExportError, match=r"c-code: .* export with --model"):
        export(bare, ["c-code"]).require_all()


def test_the_code_on_the_page_is_what_is_written() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()
    shown = re.findall(r"```c\n(.*?)```", page.split("\n## Straight C")[1], flags=re.DOTALL)
    mapped = solve(MODELS / "ds_cnn_int8.onnx", "gap8", solver="list", tiles="first")
    assert mapped.plan is not None
    network = load_network(MODELS / "ds_cnn_int8.onnx", kinds=mapped.problem.machine.kinds)
    given = subject(mapped.problem, mapped.plan, network=network, prefix="net")
    written = b"".join(export(given, ["c-code"]).files.values()).decode("latin-1")
    assert len(shown) == 2
    assert all(block in written for block in shown)
