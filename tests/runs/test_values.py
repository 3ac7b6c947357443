"""Values of fields: lists, doublings, steps; what is wrong is named with what is there."""

from fractions import Fraction
from pathlib import Path

import pytest

import spmilp
from spmilp.runs.points import Point, points_of, settings_of, values_of

KIB = 1024


@pytest.mark.parametrize(
    ("name", "given", "values"),
    [
        ("spm", "16k:128k", (16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB)),
        ("spm", "16k:100k", (16 * KIB, 32 * KIB, 64 * KIB, 100 * KIB)),
        ("spm", "64k,16k:48k:16k", (16 * KIB, 32 * KIB, 48 * KIB, 64 * KIB)),
        ("spm", ["16KiB", 32768], (16 * KIB, 32 * KIB)),
        ("dma_channels", "1,2,4,2", (1, 2, 4)),
        ("dma_channels", 3, (3,)),
        ("dram_rate", "1,47/2,2.5", (1, Fraction(5, 2), Fraction(47, 2))),
        ("dram_rate", "1/2:2", (Fraction(1, 2), 1, 2)),
        ("topology.routing", "xy,shortest", ("xy", "shortest")),
        ("scratchpads.spm.dma.dma.multicast", "true", (True,)),
        ("scratchpads.spm.alignment_bytes", "1k", (KIB,)),
        ("core_kinds.core.launch_cycles", "0,40", (0, 40)),
    ],
)
def test_texts_stand_for_values(name: str, given: object, values: tuple[object, ...]) -> None:
    assert values_of(name, given) == values


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("spm", "16q", "spm=16q: '16q' is no size in bytes"),
        ("dma_channels", "many", "dma_channels=many: expected numbers such as"),
        ("spm", "64k:16k", "expected 0 < FROM <= TO"),
        ("dma_channels", "1:8:0", "a STEP > 0"),
        ("dram_rate", "1:2:3:4", "FROM:TO:STEP"),
        ("dma_channels", "1:1000000:1", "more than 100,000 values"),
    ],
)
def test_what_is_no_value_is_named(name: str, given: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        values_of(name, given)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("topologie.columns", 2, "has no such field; did you mean topology.columns"),
        (
            "core_kinds.cores.launch_cycles",
            2,
            "no such field; did you mean core_kinds.core.launch_cycles",
        ),
        ("topology.latency", 2, "topology.latency: unknown field.*latency_cycles"),
        ("topology.columns", "many", "topology.columns: .*got 'many'"),
        ("topology.columns.size", 2, "no such field; did you mean topology.columns"),
        ("dma_channels", 0, "machine mesh4x4: .*channels: expected int >= 1; got 0"),
    ],
)
def test_a_field_or_a_value_that_no_machine_has_is_named_with_what_is_there(
    files: tuple[Path, Path], field: str, value: object, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        spmilp.sweep(files[0], "mesh4x4", fields={field: value}, jobs=1)


def test_any_field_can_be_set_by_its_path() -> None:
    machine = spmilp.load_machine("mesh4x4")
    slow = machine.replace(fields={"topology.latency_cycles": 9, "dram.*.latency_cycles": 99})
    latencies = {link.latency for link in slow.machine.links}
    assert {9, 99} <= latencies
    assert not {9, 99} & {link.latency for link in machine.machine.links}
    assert slow.sha256 != machine.sha256
    assert "topology.latency_cycles" in slow.machine.unverified
    engine = machine.replace(fields={"scratchpads.spm.dma.dma.channels": 3})
    assert engine.machine.engines == machine.replace(dma_channels=3).machine.engines


def points(files: tuple[Path, Path], seed: int = 0, **fields: object) -> tuple[Point, ...]:
    values = {name: values_of(name, given) for name, given in fields.items()}
    return points_of(files[:1], files[1:], [settings_of({"seed": seed})], values, {})


def test_only_more_of_what_never_harms_covers_a_point(files: tuple[Path, Path]) -> None:
    small, channels, memory, both = points(files, spm="4k,8k", dma_channels="1,2")
    assert small.is_covered_by(both)
    assert memory.is_covered_by(both)
    assert not both.is_covered_by(small)
    assert not memory.is_covered_by(channels)
    assert not small.is_covered_by(small)

    few, many = points(files, **{"core_kinds.core.launch_cycles": "0,10"})
    assert not few.is_covered_by(many)
    assert not many.is_covered_by(few)
