"""The allocation as CSV and as MiniMalloc's CSV."""

import csv
from io import StringIO

from checker.worked_example import PLAN, SPM0
from export.subjects import HOSTILE, lowered, subject, with_hostile_names
from spmilp.export.allocation import allocation_csv, allocations, minimalloc
from spmilp.export.names import field
from spmilp.export.subject import Subject


def rows_of(given: Subject) -> list[dict[str, str]]:
    text = allocation_csv(given)["allocation.csv"].decode("ascii")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    return list(csv.DictReader(StringIO("".join(lines))))


def test_every_residency_reads_back_from_the_csv() -> None:
    found = {
        int(row["residency"]): (
            *(int(row["memory"]), int(row["offset_hex"], 16), int(row["size"])),
            *(int(row["start"]), int(row["end"]), row["name"]),
        )
        for row in rows_of(subject())
    }
    given = subject()
    assert found == {
        residency.index: (
            *(residency.memory, residency.offset, residency.bytes, residency.start, residency.end),
            given.name(residency),
        )
        for residency in PLAN.residencies
    }


def test_hostile_names_are_one_ascii_field_that_no_spreadsheet_computes() -> None:
    rows = rows_of(with_hostile_names())
    assert len(rows) == len(PLAN.residencies)
    assert not any(row["name"].startswith(("=", "+", "-", "@")) for row in rows)
    assert field("=1+2") == "'=1+2"
    assert field("a\nb") == "a\\nb"
    assert len({field(name) for name in HOSTILE}) == len(HOSTILE)


def test_the_bound_of_a_scratchpad_is_its_most_live_bytes_and_overhead_the_rest() -> None:
    spm0 = allocations(subject())[SPM0]
    assert spm0.peak == 256
    # x0, w, a and scratch in [49, 69): 64 + 64 + 32 + 32
    assert spm0.bound == 192
    assert spm0.overhead == 64


def test_what_lies_in_a_tensor_takes_no_room_of_its_own() -> None:
    dram = allocations(subject())[0]
    at_place = [row for row in dram.rows if row.live is None]
    left = next(row for row in at_place if row.residency.index == 18)
    assert (left.residency.offset, left.end_offset) == (128, 128 + 3 * 16 + 8)


def test_rows_for_minimalloc_overlap_nowhere_and_pairs_in_place_are_one() -> None:
    for given in (subject(), lowered("ds_cnn_int8", 5, 1)):
        files = minimalloc(given)
        for content in files.values():
            lines = content.decode("ascii").splitlines()
            assert lines[0] == "id,lower,upper,size,offset"
            rows = [[int(cell) for cell in line.split(",")[1:]] for line in lines[1:]]
            for number, (lower, upper, size, offset) in enumerate(rows):
                for other_lower, other_upper, other_size, other_offset in rows[:number]:
                    assert (
                        upper <= other_lower
                        or other_upper <= lower
                        or offset + size <= other_offset
                        or other_offset + other_size <= offset
                    )
    of_spm0 = minimalloc(subject())[f"minimalloc-memory{SPM0}.csv"].decode("ascii")
    assert "r8+r10,49,97,32,192\n" in of_spm0
    assert "reserved0,0,196,64,0\n" in of_spm0
