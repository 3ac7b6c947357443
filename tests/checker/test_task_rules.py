"""Rules about tasks, one test for each way to break one in the worked example."""

from dataclasses import replace
from fractions import Fraction

from checker.worked_example import (
    L2,
    MACHINE,
    PLAN,
    PROBLEM,
    SPM1,
    X0,
    X1_TOP,
    A,
    broken,
    changed,
    with_machine,
    with_task,
)
from spmilp.machine.machine import Link, RemoteReads
from spmilp.plan.plan import Residency


def test_a_task_runs_only_on_a_kind_of_core_that_can() -> None:
    found = broken(PLAN, with_task(3, cycles=(8, None)))
    assert found == {
        "able_core": ["task 3 (pool) runs on core c2 of kind small, which cannot run it; able: big"]
    }


def test_a_task_takes_exactly_the_cycles_of_its_core() -> None:
    found = broken(PLAN, with_task(3, cycles=(10, 9)))
    assert found == {
        "exact_cycles": [
            "task 3 (pool) runs [49, 59) = 10 cycles on core c2, expected 9 (9 + 0 for remote "
            "reads)"
        ]
    }


def test_remote_reads_cost_their_bytes_times_hops() -> None:
    dearer = RemoteReads(cycles_per_byte_hop=Fraction(1, 7), longest_route=2)
    found = broken(PLAN, with_machine(remote=dearer))
    assert found == {
        "exact_cycles": [
            "task 2 (left) runs [79, 97) = 18 cycles on core c1, expected 20 (10 + 10 for remote "
            "reads)"
        ]
    }


def test_a_core_runs_one_task_at_a_time() -> None:
    found = broken(changed(placements={3: {"core": 1}, 2: {"start": 55, "end": 73}}))
    assert found["one_task_at_a_time"] == [
        "core c1 starts task 2 (left) at cycle 55 < 59, the end of task 3 (pool)"
    ]


def test_a_long_task_is_found_behind_a_short_one() -> None:
    """Two tasks inside a third one's run both collide with it."""
    plan = changed(
        placements={
            2: {"core": 1, "start": 40, "end": 100},
            3: {"core": 1, "start": 50, "end": 60},
            4: {"core": 1, "start": 70, "end": 80},
        }
    )
    assert broken(plan)["one_task_at_a_time"] == [
        "core c1 starts task 3 (pool) at cycle 50 < 100, the end of task 2 (left)",
        "core c1 starts task 4 (right) at cycle 70 < 100, the end of task 2 (left)",
    ]


def test_tasks_that_touch_in_time_may_share_a_core() -> None:
    assert PLAN.placements[0].end == PLAN.placements[1].start
    assert "one_task_at_a_time" not in broken(PLAN)


def test_a_task_starts_after_those_it_follows() -> None:
    found = broken(PLAN, with_task(3, after=(2,)))
    assert found == {
        "precedence": [
            "task 3 (pool) starts at cycle 49 < 97, the end of task 2 (left) that it follows"
        ]
    }


def test_a_task_starts_after_the_writers_of_what_it_reads() -> None:
    found = broken(changed(placements={1: {"start": 68, "end": 78}}))
    assert found["precedence"] == [
        "task 1 (add) starts at cycle 68 < 69, the end of task 0 (first) that it follows"
    ]


def test_an_operand_is_served_by_a_residency_that_holds_it() -> None:
    found = broken(changed(placements={3: {"reads": (6, 6)}}))
    assert found == {
        "operands_served": [
            "task 3 (pool) reads slice 8 (x0) from residency 6 (x1 in spm1), which holds "
            "slice 9 (x1)"
        ]
    }


def test_a_slice_is_not_served_by_another_slice_of_its_parent() -> None:
    found = broken(changed(residencies={6: {"slice": 1}}, placements={3: {"reads": (3, 3)}}))
    assert "which holds slice 0 (x0)" in found["operands_served"][0]


def test_an_operand_is_not_served_by_scratch() -> None:
    found = broken(changed(placements={0: {"reads": (7, 9)}}))
    assert found["operands_served"] == [
        "task 0 (first) reads slice 0 (x0) from residency 9 (scratch in spm0), which holds scratch"
    ]


def test_an_operand_is_valid_when_the_task_starts() -> None:
    plan = changed(placements={3: {"start": 42, "end": 52}}, residencies={12: {"start": 42}})
    assert broken(plan) == {
        "operands_served": [
            "task 3 (pool) reads slice 8 (x0) from residency 3 (x0 in spm1), which is valid from "
            "cycle 49 > 42, the task's start",
            "task 3 (pool) reads slice 9 (x1) from residency 6 (x1 in spm1), which is valid from "
            "cycle 43 > 42, the task's start",
        ]
    }


def test_an_operand_stays_until_the_task_ends() -> None:
    plan = changed(
        residencies={2: {"end": 60}, 1: {"end": 70}},
    )
    found = broken(plan)
    assert found == {
        "operands_served": [
            "task 0 (first) reads slice 0 (x0) from residency 2 (x0 in spm0), which ends at cycle "
            "60 < 69, the task's end"
        ]
    }


def test_an_operand_lies_in_the_cores_own_memory() -> None:
    remote = broken(PLAN, with_machine(remote=None))
    assert remote["operands_served"] == [
        "task 2 (left) reads slice 4 (b) from residency 10 (b in spm0), but core c1 reads only in "
        "its own memory spm1"
    ]


def test_a_remote_operand_lies_in_a_scratchpad() -> None:
    plan = changed(placements={4: {"reads": (15, 22)}}, residencies={15: {"end": 181}})
    assert broken(plan)["operands_served"] == [
        "task 4 (right) reads slice 5 (c) from residency 15 (c in l2), but core c1 reads remotely "
        "in scratchpads only; l2 is shared"
    ]


def test_a_remote_operand_lies_within_the_longest_route() -> None:
    near = RemoteReads(cycles_per_byte_hop=Fraction(1, 8), longest_route=1)
    assert broken(PLAN, with_machine(remote=near)) == {
        "operands_served": [
            "task 2 (left) reads slice 4 (b) from residency 10 (b in spm0), but from spm0 to spm1 "
            "there are 2 links > 1"
        ]
    }


def test_a_remote_operand_needs_a_route() -> None:
    links = list(MACHINE.links)
    links[5] = Link(index=5, source="spm0", target="elsewhere", rate=Fraction(4), latency=1)
    found = broken(PLAN, with_machine(links=tuple(links)))
    assert found["operands_served"] == [
        "task 2 (left) reads slice 4 (b) from residency 10 (b in spm0), but no route leads from "
        "spm0 to spm1"
    ]


def test_a_written_buffer_has_a_residency_of_it() -> None:
    found = broken(changed(residencies={19: {"slice": X1_TOP}}))
    assert found["results_have_room"] == [
        "task 4 (right) writes buffer 7 (y1) to residency 19 (x1 in spm1), which holds slice 9 (x1)"
    ]


def test_a_written_buffer_lies_in_the_cores_memory() -> None:
    found = broken(changed(residencies={12: {"memory": L2, "offset": 128, "end": 59}}))
    assert found["results_have_room"] == [
        "task 3 (pool) writes buffer 5 (c) to residency 12 (c in l2), but core c2 writes only in "
        "its own memory spm1"
    ]


def test_a_written_buffer_has_room_when_the_task_starts() -> None:
    assert broken(changed(residencies={12: {"start": 50}})) == {
        "results_have_room": [
            "task 3 (pool) writes buffer 5 (c) to residency 12 (c in spm1), which starts at cycle "
            "50 > 49, the task's start"
        ]
    }


def test_a_written_buffer_has_room_until_the_task_ends() -> None:
    found = broken(changed(residencies={19: {"end": 166}}))
    assert found["results_have_room"] == [
        "task 4 (right) writes buffer 7 (y1) to residency 19 (y1 in spm1), which ends at cycle "
        "166 < 167, the task's end"
    ]


def test_room_may_be_kept_before_and_after_the_task() -> None:
    assert broken(changed(residencies={12: {"start": 40, "end": 100}, 22: {"start": 40}})) == {}


def test_a_task_has_its_scratch() -> None:
    assert broken(changed(placements={0: {"scratch": None}})) == {
        "scratch_has_room": ["task 0 (first) needs 32 B of scratch and has 0 B"],
        "filled_as_stated": [
            "residency 9 (scratch in spm0) holds no slice and is no task's scratch"
        ],
    }


def test_scratch_is_large_enough() -> None:
    assert broken(changed(residencies={9: {"bytes": 31}})) == {
        "scratch_has_room": [
            "task 0 (first) has scratch in residency 9 (scratch in spm0), which has 31 B < 32 B"
        ]
    }


def test_scratch_lies_in_the_cores_memory() -> None:
    found = broken(changed(residencies={9: {"memory": SPM1, "offset": 320}}))
    assert found["scratch_has_room"] == [
        "task 0 (first) has scratch in residency 9 (scratch in spm1), but core c0 writes only in "
        "its own memory spm0"
    ]


def test_scratch_lasts_from_the_tasks_start_to_its_end() -> None:
    assert broken(changed(residencies={9: {"start": 50, "end": 68}})) == {
        "scratch_has_room": [
            "task 0 (first) has scratch in residency 9 (scratch in spm0), which starts at cycle "
            "50 > 49, the task's start",
            "task 0 (first) has scratch in residency 9 (scratch in spm0), which ends at cycle "
            "68 < 69, the task's end",
        ]
    }


def test_scratch_holds_no_slice() -> None:
    found = broken(changed(placements={0: {"scratch": 2}}))
    assert found["scratch_has_room"] == [
        "task 0 (first) has scratch in residency 2 (x0 in spm0), which holds slice 0 (x0)"
    ]


def test_scratch_belongs_to_one_task() -> None:
    found = broken(
        changed(placements={1: {"scratch": 9}}, residencies={9: {"end": 79}}),
        with_task(1, scratch=8),
    )
    assert found == {
        "scratch_has_room": [
            "task 1 (add) has scratch in residency 9 (scratch in spm0), which is the scratch of "
            "task 0 (first) too"
        ]
    }


def test_a_task_without_scratch_has_none() -> None:
    found = broken(PLAN, with_task(0, scratch=0))
    assert found == {
        "scratch_has_room": [
            "task 0 (first) has scratch in residency 9 (scratch in spm0), but needs 0 B of scratch"
        ]
    }


def test_a_residency_is_filled_by_the_task_that_writes_it() -> None:
    found = broken(changed(residencies={8: {"filled_by_task": 3}}))
    assert found == {
        "filled_as_stated": [
            "residency 8 (a in spm0) states to be filled by task 3 (pool), which does not write it",
            "residency 8 (a in spm0) is written by task 0 (first), but states task 3 (pool)",
        ]
    }


def test_a_residency_is_filled_by_the_transfer_that_goes_there() -> None:
    found = broken(changed(residencies={5: {"filled_by_transfer": 0}}))
    assert found == {
        "filled_as_stated": [
            "residency 5 (x1 in l2) states to be filled by transfer 0, which does not go there",
            "residency 5 (x1 in l2) is a destination of transfer 2, but states transfer 0",
        ]
    }


def test_a_destination_exists_when_its_transfer_starts() -> None:
    assert broken(changed(residencies={5: {"start": 15}})) == {
        "filled_as_stated": [
            "residency 5 (x1 in l2) starts at cycle 15 > 14, the start of transfer 2 that fills it"
        ]
    }


def test_only_what_is_there_at_cycle_0_needs_no_filling() -> None:
    found = broken(changed(residencies={8: {"filled_by_task": None}}))
    assert found == {
        "filled_as_stated": [
            "residency 8 (a in spm0) is filled by nothing, but buffer 3 is written by a task",
            "residency 8 (a in spm0) is filled by nothing and starts at cycle 49, expected 0",
            "residency 8 (a in spm0) is written by task 0 (first), but states nothing",
        ]
    }


def test_a_buffer_is_at_cycle_0_where_the_problem_says() -> None:
    found = broken(changed(residencies={22: {"filled_by_transfer": None, "start": 0}}))
    assert found["filled_as_stated"] == [
        "residency 22 (w in spm1) is filled by nothing, but at cycle 0 buffer 2 is in spm0, not in "
        "spm1",
        "residency 22 (w in spm1) is a destination of transfer 12, but states nothing",
    ]


def test_what_is_there_at_the_start_is_there_from_cycle_0() -> None:
    found = broken(changed(residencies={7: {"start": 3}}))
    assert found == {
        "filled_as_stated": [
            "residency 7 (w in spm0) is filled by nothing and starts at cycle 3, expected 0"
        ]
    }


def test_a_scratchpad_holds_whole_buffers_at_cycle_0() -> None:
    residencies = (
        *PLAN.residencies,
        Residency(index=23, slice=10, memory=2, offset=256, bytes=16, start=0, end=9),
    )
    part = replace(PROBLEM.slices[A], index=10, buffer=2, start=(8,), extent=(16,), bytes=16)
    problem = replace(PROBLEM, slices=(*PROBLEM.slices, part))
    assert broken(replace(PLAN, residencies=residencies), problem) == {
        "filled_as_stated": [
            "residency 23 (w in spm0) is filled by nothing, but at cycle 0 buffer 2 lies there as "
            "a whole"
        ]
    }


def test_a_scratchpad_holds_a_buffer_once_at_cycle_0() -> None:
    copy = Residency(index=23, slice=2, memory=2, offset=256, bytes=64, start=0, end=9)
    assert broken(replace(PLAN, residencies=(*PLAN.residencies, copy))) == {
        "filled_as_stated": [
            "residency 23 (w in spm0) is filled by nothing, but at cycle 0 buffer 2 lies in "
            "residency 7 alone"
        ]
    }


def test_a_weight_may_come_back_to_where_it_was_at_cycle_0() -> None:
    back = replace(
        PLAN.transfers[12], index=13, source=22, destinations=(23,), start=120, end=139,
        route=(7, 4),
    )  # fmt: skip
    weight = replace(PLAN.residencies[7], index=23, start=120, end=150, filled_by_transfer=13)
    plan = replace(
        PLAN, transfers=(*PLAN.transfers, back), residencies=(*PLAN.residencies, weight),
        claim=replace(PLAN.claim, energy=PLAN.claim.energy + 64 * 4),
    )  # fmt: skip
    assert broken(plan) == {}


def test_a_slice_of_what_lies_in_dram_may_be_there_at_cycle_0() -> None:
    residencies = (
        *PLAN.residencies,
        Residency(index=23, slice=8, memory=0, offset=0, bytes=32, start=0, end=9),
    )
    assert broken(replace(PLAN, residencies=residencies)) == {}


def test_a_lost_value_is_reported_as_such() -> None:
    found = broken(changed(residencies={16: {"end": 160}}))
    assert found == {
        "no_value_lost": [
            "task 4 (right) needs slice 5 (c) in cycles [157, 167), but its last valid residency "
            "ended at cycle 160 and no copy was stored"
        ]
    }


def test_a_value_lost_before_its_transfer_is_reported_as_such() -> None:
    found = broken(changed(residencies={11: {"end": 110}}))
    assert found == {
        "no_value_lost": [
            "transfer 8 needs slice 6 (y0) in cycles [97, 116), but its last valid residency "
            "ended at cycle 110 and no copy was stored"
        ]
    }


def test_an_output_is_valid_in_its_memory_at_the_end() -> None:
    assert broken(changed(residencies={18: {"end": 195}})) == {
        "outputs_stored": [
            "buffer 6 (y0) must be valid in dram at cycle 196, but its last ends at 195"
        ]
    }


def test_an_output_that_was_never_stored_is_reported() -> None:
    found = broken(replace(PLAN, residencies=PLAN.residencies[:21], transfers=PLAN.transfers[:11]))
    assert set(found) == {"structure"}
    residencies = list(PLAN.residencies)
    residencies[21] = replace(residencies[21], memory=L2, offset=224, slice=X0)
    found = broken(replace(PLAN, residencies=tuple(residencies)))
    assert found["outputs_stored"] == [
        "buffer 7 (y1) must be valid in dram at cycle 196, but no residency of it is there"
    ]
