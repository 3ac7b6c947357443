"""Where gaps and bytes lie, and gaps split by the best that is known: tables of runs by hand."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench.made import STATISTICS, record
from spmilp.analysis.attribution import Attribution, PhaseUse
from spmilp.analysis.idle import Lack
from spmilp.analysis.subject import Part
from spmilp.analysis.traffic import Beyond, Excess
from spmilp.bench.attribution import (
    attributed,
    bytes_frame,
    cycles_frame,
    excess_frame,
    gap_frame,
    phases_frame,
)
from spmilp.bench.best_known import bound_of_any_tiles, gaps_frame, keep_best, read_best
from spmilp.bench.folder import read_recorded, write_tables
from spmilp.bench.records import Record, Records, appending
from spmilp.bench.tables import runs_frame
from spmilp.errors import FileError
from spmilp.problem.problem import BufferKind

HEAD = "row,makespan,bound,seconds,revision\n"


def phase(start: int, end: int, busy: int, **idle: int) -> PhaseUse:
    return PhaseUse(
        start=start,
        end=end,
        part=Part.LOAD,
        busy=busy,
        idle=dict.fromkeys(Lack, 0) | {Lack(name): cycles for name, cycles in idle.items()},
        **dict.fromkeys(("channels", "links", "busiest_link", "dram_out"), 0.5),
        **dict.fromkeys(("dram_in", "memory", "fullest"), 0.25),
    )


FOUND = Attribution(
    cores=4,
    phases=(phase(0, 40, 100, dram=50, room=10), phase(40, 120, 200, dram=50, done=70)),
    compulsory=1000,
    excess=(
        Excess(kind=Beyond.SPILL, data=BufferKind.INTERMEDIATE, operator="=conv", bytes=300),
        Excess(kind=Beyond.SPILL, data=BufferKind.INTERMEDIATE, operator="pool", bytes=100),
        Excess(kind=Beyond.COPY, data=BufferKind.WEIGHT, operator="conv", bytes=200),
    ),
)
RECORDS = (
    record("x", "list", 120, attribution=FOUND),
    record("y", "list", 100, attribution=replace(FOUND, excess=())),
    record("z", "list", None),
    record("x", "auto", 110),
)


def test_each_phase_is_a_row_and_its_cycles_add_up() -> None:
    frame = phases_frame(RECORDS)
    assert frame[["instance", "phase", "start"]].to_numpy().tolist() == [
        ["x", 0, 0],
        ["x", 1, 40],
        ["y", 0, 0],
        ["y", 1, 40],
    ]
    idle = frame[[name for name in frame if name.startswith("idle_")]].sum(axis=1)
    assert (frame["busy"] + idle == frame["core_cycles"]).all()
    assert excess_frame(RECORDS)[["kind", "operator", "bytes"]].to_numpy().tolist() == [
        ["spill", "=conv", 300],
        ["spill", "pool", 100],
        ["copy", "conv", 200],
    ]


def test_the_parts_of_the_gap_add_up_to_it() -> None:
    found = list(attributed(RECORDS))
    (row,) = gap_frame(runs_frame(RECORDS), found).to_dict("records")
    # Gaps of 20 of 120 and of 0 cycles; 100 of 180 idle cycles wait for DRAM.
    assert (row["solver"], row["runs"]) == ("list", 2)
    assert row["gap"] == pytest.approx(1 / 6 / 2, abs=1e-6)
    assert row["dram"] == pytest.approx(row["gap"] * 100 / 180)
    assert sum(row[lack] for lack in Lack) == pytest.approx(row["gap"])
    (cycles,) = cycles_frame(found).to_dict("records")
    assert (cycles["busy"], cycles["done"]) == (300 / 480, 70 / 480)


def test_bytes_are_relative_to_the_compulsory_and_to_all_runs_with_a_plan() -> None:
    table = bytes_frame(attributed(RECORDS))
    assert table[["kind", "runs", "to_compulsory"]].to_numpy().tolist() == [
        ["spill", 1, 0.2],
        ["copy", 1, 0.1],
    ]
    assert table["share"].tolist() == pytest.approx([2 / 3, 1 / 3])


def folder_with(folder: Path, *records: Record) -> Records:
    with appending(folder) as file:
        kept = Records(folder)
        for each in records:
            kept.add(each, file)
    return read_recorded(folder)


def test_records_keep_it_and_tables_are_only_there_with_it(tmp_path: Path) -> None:
    kept = folder_with(tmp_path / "with", *RECORDS)
    assert [each.attribution for each in kept] == [each.attribution for each in RECORDS]
    write_tables(kept)
    assert "'=conv" in (tmp_path / "with" / "excess.csv").read_text()
    assert "## Where the gap lies" in (tmp_path / "with" / "summary.md").read_text()
    write_tables(folder_with(tmp_path / "without", RECORDS[3]))
    assert not (tmp_path / "without" / "attribution.csv").exists()


def test_a_run_whose_plan_was_not_analysed_is_missing_where_that_is_wanted(
    tmp_path: Path,
) -> None:
    kept = folder_with(tmp_path, *RECORDS)
    keys = {each.key: each.setting for each in RECORDS}
    assert all(kept.has(key, setting) for key, setting in keys.items())
    missing = {key for key, of in keys.items() if not kept.has(key, of, attributed=True)}
    assert missing == {("x", "auto", 0)}


def test_better_runs_are_kept_and_worse_ones_are_not(tmp_path: Path) -> None:
    file = tmp_path / "best.csv"
    file.write_text(f"{HEAD}x,115,40,1800.0,old\nother,7,5,1.0,old\n")
    assert keep_best(file, RECORDS[:3]) == []
    # x has a better bound now, from another run than its makespan; y is new.
    assert file.read_text() == f"{HEAD}other,7,5,1.0,old\nx,115,50,1800.0,old\ny,100,50,4.0,1\n"
    assert keep_best(file, RECORDS) == []
    assert read_best(file)["x"].makespan == 110
    assert keep_best(tmp_path / "new.csv", ()) == []
    assert (tmp_path / "new.csv").read_text() == HEAD


def test_a_run_that_contradicts_what_is_known_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "best.csv"
    file.write_text(f"{HEAD}x,45,40,1.0,old\ny,500,200,1.0,old\n")
    before = file.read_text()
    first, second = keep_best(file, RECORDS[:2])
    assert "row x: makespan 45 is below the bound 50" in first
    assert "row y: makespan 100 is below the bound 200" in second
    assert "revision old" in second
    assert file.read_text() == before


def test_a_gap_is_split_into_what_was_found_with_more_time_and_what_is_open(
    tmp_path: Path,
) -> None:
    file = tmp_path / "best.csv"
    file.write_text(f"{HEAD}x,90,60,1800.0,old\ny,400,10,1.0,old\nz,45,1,1.0,old\n")
    below = record("z", "list", 80)
    frame = gaps_frame([*RECORDS[:3], below], read_best(file)).set_index("instance")
    names = ["gap", "found_with_more_time", "still_open"]
    # The bound of x is the file's, that of y the roofline; y has found better than the file.
    assert frame.loc["x", names].tolist() == pytest.approx([0.5, 0.25, 0.25])
    assert frame.loc["y", names].tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert frame.loc["z", names].isna().all()
    assert "45 cycles are below the bound 50" in frame.loc["z", "reason"]


def test_the_bound_is_one_of_any_tiling() -> None:
    without = replace(STATISTICS, roofline=None)
    plain = dict.fromkeys(("model", "machine", "dram", "spm", "tiles"), "")
    assert bound_of_any_tiles(record()) == 50
    assert bound_of_any_tiles(record(statistics=without)) is None
    assert bound_of_any_tiles(record(statistics=without, described=plain)) == 100
    assert bound_of_any_tiles(record(statistics=replace(STATISTICS, quantity="energy"))) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("row,makespan\n", "line 1: columns row,makespan, expected row,makespan,bound"),
        (f"{HEAD}x,1,2\n", "line 2: 3 cells, expected 5"),
        (f"{HEAD}x,many,2,1,r\n", "line 2: invalid literal"),
        (f"{HEAD}x,1,2,1,r\n", "line 2: makespan 1 is below the bound 2"),
        (f"{HEAD}x,3,2,1,r\nx,3,2,1,r\n", "line 3: row x is there twice"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "best.csv"
    file.write_text(text)
    with pytest.raises(FileError) as error:
        keep_best(file, RECORDS)
    assert f"{file}: {said}" in str(error.value)
    assert file.read_text() == text


def test_names_that_a_spreadsheet_would_compute_are_found_again(tmp_path: Path) -> None:
    file = tmp_path / "best.csv"
    keep_best(file, [record("=1+1", "list", 120)])
    (row,) = gaps_frame([record("=1+1", "auto", 150)], read_best(file)).to_dict("records")
    assert (row["best_known"], row["found_with_more_time"]) == (120, 0.2)
    assert keep_best(file, [record("=1+1", "list", 110)]) == []
    assert len(pd.read_csv(file)) == 1
