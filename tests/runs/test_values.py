"""Values of fields, and the smallest of them that meets a target."""

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import spmilp
from runs.here import Here
from spmilp.errors import ArgumentError
from spmilp.runs.frames import swept_frame
from spmilp.runs.jobs import Store
from spmilp.runs.points import Point, points_of, settings_of, values_of
from spmilp.runs.sweep import Rows
from spmilp.runs.target import MEETS, NOT_FOUND, PROVEN, Target, conclusions, look_for_smallest

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


def sought(
    files: tuple[Path, Path], folder: Path, wanted: str, spm: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table of what was tried, and what is concluded."""
    values, target = {"spm": values_of("spm", spm)}, Target.of(wanted)
    points = points_of(files[:1], files[1:], [settings_of({"solver": "list"})], values, {})
    rows = Rows(store=Store(folder), executor=Here())
    look_for_smallest(values["spm"], points, target, rows)
    frame = swept_frame(points, rows.found)
    frame = frame.assign(verdict=[target.verdict_on(rows.found[key]) for key in frame["row"]])
    return frame, list(conclusions(frame, "spm", target))


def test_the_smallest_scratchpad_is_found_with_fewer_rows_than_values(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    machine = spmilp.load_machine(files[1]).replace(spm="8KiB")
    most = spmilp.solve(files[0], machine, solver="list").makespan
    frame, said = sought(files, tmp_path, f"makespan={most}", "2k:16k:1k")

    met = frame[frame["verdict"] == MEETS]
    found = met["spm"].iloc[0]
    assert met["makespan"].max() <= most
    assert list(frame["spm"]) == sorted(frame["spm"])
    # The next smaller one was tried, and has no such plan.
    assert list(frame[frame["spm"] == found - KIB]["verdict"]) == [NOT_FOUND]
    assert len(frame) <= 7
    assert f"spm {found // KIB} KiB is the smallest found for makespan {most:,}" in said[0]


def test_a_sweep_that_doubles_finds_no_smaller_value_than_a_target() -> None:
    """At 32 the list scheduler happens on a better plan than at 33 to 49."""
    values = range(8, 65)
    found = {n: SimpleNamespace(objective=9 if n == 32 or n >= 50 else 11) for n in values}
    rows: Any = SimpleNamespace(found={}, warm_start=lambda points: None)
    rows.solve = lambda points: rows.found.update({p.key: found[p.key] for p in points})
    points: Any = [SimpleNamespace(key=value) for value in values]
    look_for_smallest(values, points, Target.of("makespan=10"), rows)
    assert min(n for n in rows.found if found[n].objective <= 10) == 32
    assert {8, 16, 31, 32, 64} <= rows.found.keys()
    assert len(rows.found) <= 8


def test_what_no_plan_can_is_said_after_one_row(files: tuple[Path, Path], tmp_path: Path) -> None:
    frame, said = sought(files, tmp_path, "makespan=2000", "2k:16k:1k")
    assert list(frame["verdict"]) == [f"{PROVEN}: 2,048 at least, with any tiles"]
    assert "too little for makespan 2,000" in said[0]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("cycles=6000", "there are makespan, dram_traffic"),
        ("makespan", "expected a whole number"),
        ("makespan=soon", "expected a whole number"),
    ],
)
def test_a_target_that_is_none_is_named(target: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Target.of(target)
