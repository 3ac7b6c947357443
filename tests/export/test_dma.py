"""DMA descriptors move what the plan's transfers move, and what none can express is refused."""

import csv
import shutil
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.worked_example import CORE_DMA, L2_DMA, PLAN, broken, with_engine
from export.running_descriptors import Memories, epiphany, mchan
from export.subjects import subject, with_hostile_names
from spmilp.export.dma import (
    ENCODINGS,
    Descriptor,
    chain_of,
    controllers_of,
    descriptors_of,
    dma_files,
    info_of,
    words_of,
)
from spmilp.machine.controllers import CONTROLLERS, Block, blocks_of, defects_of
from spmilp.plan.plan import Transfer

RUNNERS = {"mchan": mchan("mchan", 17), "mchan_v6": mchan("mchan_v6", 16), "epiphany": epiphany}

SIZE = 1 << 20


@st.composite
def copies(draw: st.DrawFn, granule: int = 1) -> Block:
    """Draw a copy of up to three loops, rows apart by gaps that are sometimes none or large."""
    run = granule * draw(st.integers(1, 300))
    source = target = run
    loops: list[tuple[int, int, int]] = []
    for _ in range(draw(st.integers(0, 3))):
        gap = st.sampled_from([0, granule, 4, 60, 1000]).map(lambda n: n - n % granule)
        count = draw(st.integers(2, 5))
        strides = (source + draw(gap), target + draw(gap))
        loops.insert(0, (count, *strides))
        source, target = count * strides[0], count * strides[1]
    return Block(
        source=granule * draw(st.integers(0, 40)),
        destination=granule * draw(st.integers(0, 40)),
        run=run,
        loops=tuple(loops),
        loads=draw(st.booleans()),
    )


def move(block: Block, memories: Memories) -> None:
    """Copy run by run."""
    for turn in np.ndindex(*(count for count, _, _ in block.loops)):
        source = block.source + sum(i * s for i, (_, s, _) in zip(turn, block.loops, strict=True))
        target = block.destination + sum(
            i * d for i, (_, _, d) in zip(turn, block.loops, strict=True)
        )
        memories[1][target : target + block.run] = memories[0][source : source + block.run]


def fresh() -> list[np.ndarray]:
    """Return a memory of random bytes and an empty one."""
    random = np.random.default_rng(0)
    return [random.integers(1, 256, SIZE).astype(np.uint8), np.zeros(SIZE, np.uint8)]


def descriptors(block: Block, name: str) -> list[Descriptor]:
    """Return the chain of one copy from memory 0 to memory 1."""
    transfer = Transfer(
        index=0, slice=0, source=0, destinations=(0,), engine=0, channel=0, start=0, end=1, route=()
    )
    return chain_of(transfer, (0, 1), block, CONTROLLERS[name])


@pytest.mark.parametrize("name", sorted(RUNNERS))
@settings(derandomize=True, max_examples=40, deadline=None)
@given(block=copies())
def test_descriptors_move_what_the_copy_moves(name: str, block: Block) -> None:
    expected, found = fresh(), fresh()
    move(block, expected)
    chain = descriptors(block, name)
    RUNNERS[name]({name: words_of(chain, name), "info": list(map(info_of, chain))}, found)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("name", sorted(CONTROLLERS))
@settings(derandomize=True, max_examples=30, deadline=None)
@given(block=copies(granule=4))
def test_blocks_are_within_the_limits_and_move_every_byte(name: str, block: Block) -> None:
    controller = CONTROLLERS[name]
    blocks = blocks_of(block, controller)
    assert sum(each.bytes for each in blocks) == block.bytes
    for each in blocks:
        assert each.run <= controller.run
        assert each.bytes <= controller.total
        assert len(each.loops) <= len(controller.turns)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (Block(source=2, destination=0, run=8), "its source address 2 B is 2 modulo 4 B"),
        (Block(source=0, destination=0, run=15), "its run 15 B is 3 modulo 4 B"),
        (
            Block(source=0, destination=0, run=8, loops=((2, 18, 8),)),
            "its source stride 18 B is 2 modulo 4 B",
        ),
        (
            Block(source=0, destination=0, run=2048, loops=((17, 4096, 2048),)),
            "it needs 17 descriptors > 16 of aie_bd",
        ),
    ],
)
def test_what_no_chain_can_express_is_said_with_both_numbers(block: Block, said: str) -> None:
    assert said in next(defects_of(block, CONTROLLERS["aie_bd"]))


def test_the_checker_applies_the_limits_of_an_engines_controller() -> None:
    limited = with_engine(CORE_DMA, controller="aie_bd")
    assert "transfer_limits" not in broken(PLAN, limited)
    residencies = list(PLAN.residencies)
    residencies[7] = replace(residencies[7], offset=130)
    messages = broken(replace(PLAN, residencies=tuple(residencies)), limited)["transfer_limits"]
    assert any("its source address 130 B is 2 modulo 4 B" in message for message in messages)


def test_the_last_choice_that_fits_an_engine_counts() -> None:
    given = replace(subject(), controllers=(("*", "mchan"), ("l2*", "epiphany")))
    found = controllers_of(given)
    assert found[L2_DMA].name == "epiphany"
    assert found[CORE_DMA].name == "mchan"
    of_l2 = {index: each for index, each in found.items() if index == L2_DMA}
    assert {each.transfer.engine for each in descriptors_of(given, of_l2)} == {L2_DMA}


def test_the_generic_table_has_every_copy_in_the_order_of_its_channel() -> None:
    text = dma_files(subject())["dma.csv"].decode("ascii")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    rows = list(csv.DictReader(StringIO("".join(lines))))
    assert {int(row["transfer"]) for row in rows} == set(range(len(PLAN.transfers)))
    multicast = [row for row in rows if row["transfer"] == "1"]
    assert [(row["dst_memory"], row["last"]) for row in multicast] == [("spm0", "0"), ("spm1", "1")]
    for row in rows:
        moved = int(row["row_bytes"]) * int(row["rows"]) * int(row["planes"])
        assert moved == int(row["bytes"])
        follower = int(row["next"])
        if follower >= 0:
            after = rows[follower]
            assert (after["engine"], after["channel"]) == (row["engine"], row["channel"])
            assert int(after["start_cycle"]) >= int(row["start_cycle"])
    stored = next(row for row in rows if row["transfer"] == "9")
    assert (stored["row_bytes"], stored["rows"], stored["dst_stride"]) == ("8", "4", "16")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_descriptors_of_several_controllers_compile_together(tmp_path: Path) -> None:
    given = replace(
        with_hostile_names(),
        controllers=(("0*", "mchan"), ("1*", "mchan_v6"), ("2*", "epiphany")),
    )
    files = dma_files(given)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    sources = [name for name in files if name.endswith(".c")]
    headers = [f'#include "{name}"' for name in files if name.endswith(".h")]
    (tmp_path / "main.c").write_text("\n".join([*headers, "int main(void) { return 0; }", ""]))
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    done = subprocess.run(
        ["gcc", *flags, *sources, "main.c"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]
    assert len(sources) == 3


def test_every_controller_is_documented_with_its_source() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()
    for name in ENCODINGS:
        controller = CONTROLLERS[name]
        assert f"| `{name}` | runs of {controller.run:,} B" in page
        assert f"| {controller.source} |" in page
