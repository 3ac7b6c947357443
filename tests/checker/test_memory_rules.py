"""Rules about bytes, one test for each way to break one in the worked example."""

from dataclasses import replace
from typing import Any

import pytest

from checker.worked_example import (
    DRAM,
    MACHINE,
    PLAN,
    PROBLEM,
    SPM0,
    X0,
    X0_LEFT,
    Y0,
    W,
    broken,
    changed,
    with_machine,
    with_task,
)
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Place, Problem


def _with(*residencies: Residency) -> Plan:
    return replace(PLAN, residencies=(*PLAN.residencies, *residencies))


def _machine(memory: int, **fields: Any) -> Machine:
    memories = list(MACHINE.memories)
    memories[memory] = replace(memories[memory], **fields)
    return replace(MACHINE, memories=tuple(memories))


def _with_memory(memory: int, **fields: Any) -> Problem:
    return with_machine(memories=_machine(memory, **fields).memories)


def test_a_residency_ends_inside_its_memory() -> None:
    assert broken(PLAN, _with_memory(SPM0, size=240)) == {
        "inside_memory": ["residency 9 (scratch in spm0): 256 B > 240 B of spm0 at cycle 49"]
    }


def test_a_residency_stays_out_of_reserved_bytes() -> None:
    assert broken(changed(residencies={2: {"offset": 48}})) == {
        "inside_memory": [
            "residency 2 (x0 in spm0): bytes [48, 112) meet the reserved [0, 64) of spm0 at "
            "cycle 14"
        ]
    }


def test_a_residency_is_aligned() -> None:
    assert broken(changed(residencies={17: {"offset": 24}})) == {
        "inside_memory": [
            "residency 17 (y0 in l2): offset 24 B is no multiple of 16 B in l2 at cycle 97"
        ]
    }


def test_a_spill_is_aligned_too() -> None:
    assert broken(changed(residencies={14: {"offset": 200}})) == {
        "inside_memory": [
            "residency 14 (c in dram): offset 200 B is no multiple of 64 B in dram at cycle 94"
        ]
    }


def test_a_tensor_is_aligned_and_inside_its_memory() -> None:
    plan = changed(residencies={18: {"offset": 160}, 21: {"offset": 168}, 14: {"offset": 256}})
    assert broken(replace(plan, tensors=(0, 160)), _with_memory(DRAM, size=320)) == {
        "inside_memory": ["tensor 1 (y): offset 160 B is no multiple of 64 B in dram"]
    }
    assert (
        "tensor 1 (y): 192 B > 191 B of dram"
        in (broken(PLAN, _with_memory(DRAM, size=191))["inside_memory"])
    )


def test_a_residency_has_the_bytes_of_its_slice() -> None:
    assert broken(changed(residencies={6: {"bytes": 64}})) == {
        "exact_size": ["residency 6 (x1 in spm1) has 64 B, expected 32 B of slice 9 (x1)"]
    }


def test_residencies_alive_together_share_no_bytes() -> None:
    found = broken(changed(residencies={2: {"offset": 80}}))
    assert found == {
        "no_shared_bytes": [
            "residency 7 (w in spm0) and residency 2 (x0 in spm0) share 16 B [128, 144) during "
            "cycles [14, 69)"
        ]
    }


def test_residencies_that_only_touch_in_time_or_bytes_are_valid() -> None:
    residency = Residency(index=23, slice=None, memory=SPM0, offset=64, bytes=64, start=69, end=70)
    found = broken(_with(residency))
    assert found.keys() == {"filled_as_stated"}


def test_two_copies_of_one_slice_share_no_bytes_either() -> None:
    found = broken(changed(residencies={12: {"offset": 64}}))
    assert found["no_shared_bytes"] == [
        "residency 3 (x0 in spm1) and residency 12 (c in spm1) share 64 B [64, 128) during "
        "cycles [49, 94)"
    ]


def test_in_place_needs_a_permitted_pair() -> None:
    found = broken(PLAN, with_task(1, in_place=()))
    assert found == {
        "no_shared_bytes": [
            "residency 8 (a in spm0) and residency 10 (b in spm0) share 32 B [192, 224) during "
            "cycles [69, 79)"
        ]
    }


def test_in_place_means_at_the_same_offset() -> None:
    found = broken(changed(residencies={10: {"offset": 208}, 9: {"offset": 256}}))
    assert found["in_place"] == [
        "residency 8 (a in spm0) and residency 10 (b in spm0) share 16 B [208, 224) during cycles "
        "[69, 79), in place at offset 208 B, expected 192 B"
    ]


def test_only_the_residency_that_the_task_reads_is_replaced_in_place() -> None:
    """Another one of the same slice, with a higher number."""
    other = replace(PLAN.residencies[8], index=23, start=79, end=90)
    found = broken(_with(other))
    assert "no_shared_bytes" in found
    assert "in_place" not in found


def test_in_place_begins_when_the_task_starts() -> None:
    found = broken(changed(residencies={10: {"start": 68}}))
    assert found == {
        "in_place": [
            "residency 8 (a in spm0) and residency 10 (b in spm0) share 32 B [192, 224) during "
            "cycles [68, 79), expected only while task 1 (add) runs, in [69, 79)"
        ]
    }


def test_in_place_ends_with_the_task() -> None:
    found = broken(changed(residencies={8: {"end": 80}}))
    assert found == {
        "in_place": [
            "residency 8 (a in spm0) and residency 10 (b in spm0) share 32 B [192, 224) during "
            "cycles [69, 80), expected only while task 1 (add) runs, in [69, 79)"
        ]
    }


def test_in_place_forbids_that_another_task_reads_the_old_value() -> None:
    """Task ``left`` reads a remotely while ``add`` overwrites it."""
    problem = with_task(2, reads=(X0, 3))
    plan = changed(placements={2: {"start": 60, "end": 78, "reads": (3, 8)}})
    found = broken(plan, problem)["in_place"]
    assert found == [
        "residency 8 (a in spm0) and residency 10 (b in spm0) share 32 B [192, 224) during cycles "
        "[69, 79), but task 2 (left) reads the old value until cycle 78 > 69, the start of "
        "task 1 (add)"
    ]


@pytest.mark.parametrize("number", [12, 1])
def test_in_place_forbids_that_a_transfer_reads_the_old_value(number: int) -> None:
    """Also one that has the number of the task."""
    found = broken(changed(transfers={number: {"source": 8, "slice": 3, "start": 60, "end": 71}}))
    assert found["in_place"] == [
        "residency 8 (a in spm0) and residency 10 (b in spm0) share 32 B [192, 224) during cycles "
        f"[69, 79), but transfer {number} reads the old value until cycle 71 > 69, the start of "
        "task 1 (add)"
    ]


def test_in_place_forbids_that_the_task_reads_another_slice_there() -> None:
    part = replace(PROBLEM.slices[3], index=10, extent=(2, 8), bytes=16)
    problem = with_task(1, more=(part,), reads=(3, 10))
    found = broken(changed(placements={1: {"reads": (8, 8)}}), problem)
    assert found == {
        "in_place": [
            "residency 8 (a in spm0) and residency 10 (b in spm0) share 32 B [192, 224) during "
            "cycles [69, 79), but task 1 (add) also reads slice 10 (a) there"
        ]
    }


def test_in_place_of_a_parent_that_serves_a_slice_is_not_permitted() -> None:
    part = replace(PROBLEM.slices[3], index=10, extent=(2, 8), bytes=16)
    problem = with_task(1, more=(part,), reads=(10,), in_place=((10, 4),))
    assert broken(PLAN, problem).keys() == {"no_shared_bytes"}


def test_a_residency_lies_at_its_place_in_the_tensor() -> None:
    assert broken(changed(residencies={21: {"offset": 144}})) == {
        "at_its_place": [
            "residency 21 (y1 in dram) lies at address 144, expected 136, its place in tensor y "
            "at 128"
        ]
    }


def test_a_slice_lies_at_its_own_place_in_the_tensor() -> None:
    residency = Residency(index=23, slice=9, memory=DRAM, offset=0, bytes=32, start=0, end=9)
    assert broken(_with(residency)) == {
        "at_its_place": [
            "residency 23 (x1 in dram) lies at address 0, expected 64, its place in tensor x at 0"
        ]
    }


def test_tensors_share_no_bytes() -> None:
    plan = changed(residencies={18: {"offset": 64}, 21: {"offset": 72}})
    assert broken(replace(plan, tensors=(0, 64))) == {
        "dram_tensors": ["tensor 1 (y) begins at byte 64 < 128 of dram, the end of tensor 0 (x)"]
    }


def test_a_spill_keeps_out_of_tensors_at_all_times() -> None:
    assert broken(changed(residencies={14: {"offset": 128}})) == {
        "dram_tensors": [
            "residency 14 (c in dram) lies at [128, 192), but tensor 1 (y) has [128, 192) of dram"
        ]
    }


def test_spills_share_no_bytes() -> None:
    again = replace(PLAN.residencies[14], index=23, start=121, end=130)
    found = broken(_with(again))
    assert found["no_shared_bytes"] == [
        "residency 14 (c in dram) and residency 23 (c in dram) share 64 B [192, 256) during cycles "
        "[121, 122)"
    ]


def test_boxes_of_one_tensor_that_interleave_are_disjoint() -> None:
    """The halves of y overlap as ranges of bytes: rows of one lie between those of the other."""
    y0, y1 = PLAN.residencies[18], PLAN.residencies[21]
    assert y0.offset < y1.offset < y0.offset + y0.bytes
    assert broken(PLAN) == {}


def test_two_written_buffers_do_not_share_elements_of_a_tensor() -> None:
    buffers = list(PROBLEM.buffers)
    buffers[Y0] = replace(buffers[Y0], place=Place(1, (0, 4)))
    problem = replace(PROBLEM, buffers=tuple(buffers))
    assert broken(changed(residencies={18: {"offset": 132}}), problem) == {
        "no_shared_bytes": [
            "residency 18 (y0 in dram) and residency 21 (y1 in dram) share elements of a tensor "
            "during cycles [186, 196)"
        ]
    }


def test_what_is_there_at_cycle_0_may_be_seen_through_several_residencies() -> None:
    left = Residency(index=23, slice=X0_LEFT, memory=DRAM, offset=0, bytes=32, start=0, end=9)
    assert broken(_with(left)) == {}


def test_what_is_written_does_not_share_elements_with_what_was_there() -> None:
    buffers = list(PROBLEM.buffers)
    buffers[Y0] = replace(buffers[Y0], place=Place(0, (0, 0)))
    problem = replace(PROBLEM, buffers=tuple(buffers))
    late = changed(residencies={18: {"offset": 0}})
    assert broken(late, problem) == {}
    still_there = changed(residencies={18: {"offset": 0}, 0: {"end": 123}})
    assert broken(still_there, problem) == {
        "no_shared_bytes": [
            "residency 0 (x0 in dram) and residency 18 (y0 in dram) share elements of a tensor "
            "during cycles [122, 123)"
        ]
    }


def test_a_weight_kept_in_a_scratchpad_takes_its_bytes() -> None:
    found = broken(changed(residencies={2: {"offset": 128}}))
    assert found["no_shared_bytes"][0].startswith(f"residency 7 ({PROBLEM.buffers[W].name} in")
