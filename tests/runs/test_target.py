"""The smallest value of a field that meets a target, and what is proven of smaller ones."""

from pathlib import Path

import pandas as pd
import pytest

import spmilp
from runs.here import Here
from spmilp.errors import ArgumentError
from spmilp.runs.frames import swept_frame
from spmilp.runs.jobs import Store
from spmilp.runs.points import settings_of
from spmilp.runs.sweep import Rows
from spmilp.runs.target import (
    MEETS,
    NOT_FOUND,
    PROVEN,
    Target,
    conclusions,
    ranges_of,
    smallest,
    swept_field,
)

KIB = 1024


def sought(
    files: tuple[Path, Path], folder: Path, wanted: str, **fields: str
) -> tuple[pd.DataFrame, Here, list[str]]:
    """Return the table of what was tried, who tried it, and what is concluded."""
    (among,) = ranges_of(files[:1], files[1:], [settings_of({"solver": "list"})], fields, {})
    executor, target = Here(), Target.of(wanted)
    rows = Rows(store=Store(folder), executor=executor)
    points = smallest(among, target, rows)
    frame = swept_frame(points, rows.found)
    frame = frame.assign(verdict=[target.verdict_on(rows.found[key]) for key in frame["row"]])
    return frame, executor, list(conclusions(frame, swept_field(fields), target))


def test_the_smallest_scratchpad_is_found_with_fewer_rows_than_values(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    machine = spmilp.load_machine(files[1]).replace(spm="5KiB")
    most = spmilp.solve(files[0], machine, solver="list").makespan
    frame, executor, said = sought(files, tmp_path, f"makespan={most}", spm="2k:16k")

    met = frame[frame["verdict"] == MEETS]
    found = met["spm"].iloc[0]
    assert met["makespan"].max() <= most
    assert list(frame["spm"]) == sorted(frame["spm"])
    # The next smaller one was tried, and has no such plan; no smaller machine has one at all.
    below = frame[frame["spm"] == found - KIB]
    assert list(below["verdict"]) == [NOT_FOUND]
    assert "none is ruled out" in below["verdict"].iloc[0]
    assert executor.asked < 15 + 4
    assert f"spm {found // KIB} KiB is the smallest found for makespan {most:,}" in said[0]


def test_a_plan_that_uses_less_than_there_is_answers_for_smaller_machines(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    frame, _, _ = sought(files, tmp_path, "makespan=5000", spm="2k:8k")
    met = frame[frame["verdict"] == MEETS]
    taken = met[met["warm_start"] != ""]
    assert len(taken)
    assert all(peak <= spm for peak, spm in zip(taken["peak_spm"], taken["spm"], strict=True))
    for row in taken.itertuples():
        assert (tmp_path / "rows" / row.row / "plan.json").exists()


def test_what_no_plan_can_is_said_after_one_row(files: tuple[Path, Path], tmp_path: Path) -> None:
    frame, executor, said = sought(files, tmp_path, "makespan=2000", spm="2k:16k")
    assert executor.asked == len(frame) == 1
    assert frame["verdict"].iloc[0] == f"{PROVEN}: 2,048 at least, with any tiles"
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
    assert Target.of("makespan=6,000") == Target.of("makespan = 6000")
