"""The release profile runs the same plan as the debug profile does, from far fewer bytes."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from commands.helpers import in_scheme, numbered, without
from export.subjects import lowered, replayed, subject, two_strips_subject
from player.kernel_network import KernelNetwork, integer_network
from player.reading_packed import Reader, code_of, commands_in
from player.test_player import needs_arm, needs_gcc, planned
from spmilp.checker.races import check_commands
from spmilp.checker.values.replay import replay
from spmilp.commands.commands import Command, CommandLists, EventScheme, Move, Run, Wait
from spmilp.export.errors import ExportError
from spmilp.export.footprint import footprint
from spmilp.export.formats import export
from spmilp.export.packed.bits import Bits
from spmilp.export.packed.codes import PrefixCode
from spmilp.export.packed.packed import packed_plan
from spmilp.export.subject import Profile, Subject
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut


def released(given: Subject, lists: CommandLists | None = None) -> Subject:
    """Return the same subject in the release profile, with other command lists if need be."""
    other = replace(given, profile=Profile.RELEASE)
    if lists is not None:
        other.__dict__["lists"] = lists
    return other


def packed_lists(given: Subject) -> CommandLists:
    """Return the command lists that the bits of the release profile hold.

    What a task or a transfer does is known by running it; here it gets the number that the lists
    of the subject give it.
    """
    lists = given.lists
    cores = len(lists.cores)
    expected = [command for one in lists.lists for command in one.commands]
    runs = [each for each in expected if isinstance(each, Run)]
    moves = [each for each in expected if isinstance(each, Move)]

    def named(command: Command) -> Command:
        if isinstance(command, Run):
            return runs[command.task]
        return moves[command.transfer] if isinstance(command, Move) else command

    found = [
        tuple(map(named, commands))
        for commands in commands_in(packed_plan(given), cores, len(lists.lists))
    ]
    return replace(
        lists,
        cores=tuple(
            replace(one, commands=each)
            for one, each in zip(lists.cores, found[:cores], strict=True)
        ),
        channels=tuple(
            replace(one, commands=each)
            for one, each in zip(lists.channels, found[cores:], strict=True)
        ),
    )


@needs_gcc
@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("address", EventScheme.SEMAPHORES), ("thread", EventScheme.COUNTERS)],
    ids=["address sanitizer, semaphores", "thread sanitizer, counters"],
)
def test_threads_and_one_loop_give_the_bits_of_the_value_replay(
    kind: str, scheme: EventScheme, tmp_path: Path
) -> None:
    given = planned("ds_cnn_int8", "cell_be")
    lists = in_scheme(scheme, given.subject.problem, given.subject.plan)
    programs.write_player(released(given.subject, lists), tmp_path)
    program = programs.build(tmp_path, "spmilp_play", kind)
    for option in ([], ["--loop"]):
        given.assert_same(programs.play([program, *option], given.network, given.inputs, tmp_path))


@needs_gcc
def test_the_thread_sanitizer_sees_that_waits_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSAN_OPTIONS", "halt_on_error=1")
    given = planned("ds_cnn_int8", "cell_be")
    lists = given.subject.lists
    bare = replace(
        lists,
        **{
            side: tuple(
                replace(one, commands=tuple(c for c in one.commands if not isinstance(c, Wait)))
                for one in getattr(lists, side)
            )
            for side in ("cores", "channels")
        },
    )
    programs.write_player(released(given.subject, bare), tmp_path)
    program = programs.build(tmp_path, "spmilp_play", "thread")
    with pytest.raises(RuntimeError, match="ThreadSanitizer: data race"):
        programs.play([program], given.network, given.inputs, tmp_path)


@needs_arm
def test_bare_metal_gives_the_same_bits_and_the_tables_take_what_the_footprint_says(
    tmp_path: Path,
) -> None:
    given = planned("ds_cnn_int8", "gap8")
    programs.write_player(released(given.subject), tmp_path)
    program = programs.build(tmp_path, "mps2", program="spmilp_mps2.elf")
    given.assert_same(programs.play_on_bare_metal(program, given.network, given.inputs, tmp_path))
    taken = footprint(released(given.subject))
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-S", program], capture_output=True, text=True, check=True
    )
    sizes = {
        row.split()[3]: int(row.split()[1], 16)
        for row in symbols.stdout.splitlines()
        if len(row.split()) == 4
    }
    own = [name for name in sizes if name.startswith("spmilp_plan_")] + ["tables"]
    assert sizes["spmilp_plan_image"] == taken.constants
    assert sum(sizes[name] for name in own) == taken.constants + taken.tables
    memories = [size for name, size in sizes.items() if name.startswith("memory")]
    assert sum(memories) - 8 * len(memories) <= sum(used for _, used in taken.memories)


@pytest.mark.parametrize("model", ["ds_cnn_int8", "autoencoder_int8"])
@pytest.mark.parametrize("machine", ["gap8", "cell_be"])
def test_tables_take_a_fifth_of_the_weights_or_16_kb(model: str, machine: str) -> None:
    given = planned(model, machine).subject
    small, large = footprint(released(given)), footprint(given)
    assert small.tables <= max(16_384, small.constants // 5)
    assert small.tables < large.tables / 6
    assert dict(small.memories)["dram"] <= dict(large.memories)["dram"] - small.constants // 2


def each_without_a_wait(given: Subject) -> Iterator[CommandLists]:
    """Yield packed lists without one of their waits, for each of them."""
    lists = packed_lists(given)
    for number, position, command in numbered(lists):
        if isinstance(command, Wait):
            yield without(lists, number, position)


@pytest.mark.parametrize("scheme", list(EventScheme), ids=lambda scheme: scheme.value)
def test_the_bits_hold_the_command_lists_and_every_wait_of_theirs_is_needed(
    scheme: EventScheme,
) -> None:
    debug = planned("autoencoder_int8", "cell_be").subject
    given = released(debug, in_scheme(scheme, debug.problem, debug.plan))
    assert packed_lists(given) == given.lists
    assert check_commands(given.problem, given.plan, packed_lists(given)) == ()
    tried = 0
    for lists in each_without_a_wait(given):
        assert check_commands(given.problem, given.plan, lists)
        tried += 1
    assert tried > 60


def test_the_bits_of_many_lists_hold_the_command_lists() -> None:
    given = released(planned("ds_cnn_int8", "cell_be").subject)
    assert packed_lists(given) == given.lists


@needs_gcc
def test_halos_and_results_on_the_bytes_of_operands(tmp_path: Path) -> None:
    given, inputs = two_strips_subject(in_place=True)
    assert given.network is not None
    programs.write_player(released(given), tmp_path)
    program = programs.build(tmp_path, "spmilp_play")
    found = programs.play([program], given.network, inputs, tmp_path)
    np.testing.assert_allclose(found["z"], replayed(given, inputs)["z"], rtol=1e-5, atol=1e-6)


@needs_gcc
def test_every_kernel_of_integers_runs_in_tiles(tmp_path: Path) -> None:
    network, inputs = integer_network()
    problem = lower(network, MACHINE, cut(network, 3, 3))
    plan = sequential_plan(problem)
    programs.write_player(released(subject(problem, plan, network=network)), tmp_path)
    program = programs.build(tmp_path, "spmilp_play")
    found = programs.play([program, "--loop"], network, inputs, tmp_path)
    wanted = replay(problem, plan, network, inputs)
    for group in network.groups:
        np.testing.assert_array_equal(found[group.output], wanted[group.output], group.name)


@needs_gcc
@pytest.mark.parametrize("profile", list(Profile))
def test_concat_takes_as_many_inputs_as_the_network_has(profile: Profile, tmp_path: Path) -> None:
    made = KernelNetwork()
    made.add("Concat", tuple(made.reals(1, 2) for _ in range(50)), {"axis": 0})
    network, inputs = made.network(), made.inputs
    problem = lower(network, MACHINE, cut(network, 1, 1))
    plan = sequential_plan(problem)
    given = replace(subject(problem, plan, network=network), profile=profile)
    programs.write_player(given, tmp_path)
    program = programs.build(tmp_path, "spmilp_play")
    found = programs.play([program, "--loop"], network, inputs, tmp_path)
    for name, values in replay(problem, plan, network, inputs).items():
        np.testing.assert_array_equal(found[name], values)


def test_no_file_of_the_release_profile_has_a_name_of_the_model() -> None:
    given = released(lowered("ds_cnn_int8", 2, 1))
    assert given.network is not None
    named = [name for name in given.network.tensors if len(name) > 6]
    for file, content in export(given, ["c"]).files.items():
        if file != "export.json":
            assert not [name for name in named if name.encode() in content]


@pytest.mark.parametrize("profile", list(Profile))
def test_another_weight_changes_the_image_alone(profile: Profile) -> None:
    given = replace(lowered("ds_cnn_int8", 2, 1), profile=profile)
    assert given.network is not None
    tensors = dict(given.network.tensors)
    name = next(n for n, each in tensors.items() if each.data is not None and each.data.ndim == 4)
    values = tensors[name].data
    assert values is not None
    values = values.copy()
    values.flat[5] ^= 1
    tensors[name] = replace(tensors[name], data=values)
    before = export(given, ["player"]).files
    after = export(
        replace(given, network=replace(given.network, tensors=tensors)), ["player"]
    ).files
    changed = {file for file in before if before[file] != after[file]}
    assert changed == {"spmilp_image.c", "spmilp_image.bin", "export.json"}


def test_without_the_model_there_is_no_release_profile() -> None:
    with pytest.raises(ExportError, match="add --model"):
        packed_plan(replace(released(lowered("ds_cnn_int8", 2, 1)), network=None))


def test_symbols_are_read_as_they_were_written_and_too_long_codes_refused() -> None:
    written = [7, 7, 0, 300, 7, 0, 2, 7, 7]
    for symbols in (written, [5, 5], [0]):
        code, bits = PrefixCode(symbols), Bits()
        code.put_table(bits)
        start = bits.at
        for symbol in symbols:
            code.put(bits, symbol)
        table, reader = code_of(Reader(bits.content(), 0)), Reader(bits.content(), start)
        assert [reader.symbol(table) for _ in symbols] == symbols
        assert reader.at == bits.at
    many = {0: 1, 1: 1}
    for symbol in range(2, 27):
        many[symbol] = many[symbol - 1] + many[symbol - 2]
    with pytest.raises(ExportError, match="a prefix code of 26 bits > 24"):
        PrefixCode(Counter(many).elements())


def test_numbers_of_all_sizes_are_read_as_they_were_written_and_larger_ones_refused() -> None:
    values = [0, 1, 8, 9, 64, 72, 73, 2**20 + 5, 2**31 - 1]
    bits = Bits()
    for value in values:
        bits.number(value)
    reader = Reader(bits.content(), 0)
    assert [reader.number() for _ in values] == values
    with pytest.raises(ExportError, match="export with --profile debug"):
        bits.number(2**31)
