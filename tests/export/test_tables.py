"""Tables and the trace: every residency, copy and command once, and names that nothing computes."""

import csv
import json
from collections import defaultdict
from io import StringIO
from itertools import pairwise

import pytest

from checker.worked_example import PLAN, PROBLEM
from export.subjects import HOSTILE, subject, with_hostile_names
from spmilp.export.names import field
from spmilp.export.perfetto import CHANNELS, CORES, perfetto
from spmilp.export.tables import allocation_table, command_table, descriptor_table


def rows_of(made: dict[str, bytes]) -> list[dict[str, str]]:
    """Return the rows of the one file of a table."""
    (content,) = made.values()
    lines = content.decode("ascii").splitlines(keepends=True)
    return list(csv.DictReader(StringIO("".join(e for e in lines if not e.startswith("#")))))


def test_every_residency_reads_back_from_the_csv() -> None:
    given = subject()
    found = [
        (
            *(int(row["residency"]), int(row["memory"]), int(row["offset"]), int(row["bytes"])),
            *(int(row["start"]), int(row["end"]), row["name"] or "scratch"),
        )
        for row in rows_of(allocation_table(given))
    ]
    assert found == [
        (
            *(residency.index, residency.memory, residency.offset, residency.bytes),
            *(residency.start, residency.end, given.name(residency)),
        )
        for residency in PLAN.residencies
    ]


@pytest.mark.parametrize("table", [allocation_table, command_table, descriptor_table])
def test_hostile_names_are_one_ascii_field_that_no_spreadsheet_computes(table) -> None:
    rows = rows_of(table(with_hostile_names()))
    assert len(rows) == len(rows_of(table(subject())))
    assert not any(row["name"].startswith(("=", "+", "-", "@")) for row in rows)
    assert field("=1+2") == "'=1+2"
    assert field("a\nb") == "a\\nb"
    assert len({field(name) for name in HOSTILE}) == len(HOSTILE)


def test_descriptors_have_every_copy_in_the_order_of_its_channel() -> None:
    rows = rows_of(descriptor_table(subject()))
    assert {int(row["transfer"]) for row in rows} == set(range(len(PLAN.transfers)))
    multicast = [row for row in rows if row["transfer"] == "1"]
    assert [(row["dst_memory"], row["last"]) for row in multicast] == [("spm0", "0"), ("spm1", "1")]
    for row in rows:
        moved = int(row["row_bytes"]) * int(row["rows"]) * int(row["planes"])
        assert moved == int(row["bytes"])
    stored = next(row for row in rows if row["transfer"] == "9")
    assert (stored["row_bytes"], stored["rows"], stored["dst_stride"]) == ("8", "4", "16")
    starts: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        starts.setdefault((row["engine"], row["channel"]), []).append(int(row["start_cycle"]))
    assert all(found == sorted(found) for found in starts.values())


def test_the_command_lists_name_every_task_and_transfer_once() -> None:
    rows = rows_of(command_table(with_hostile_names()))
    ran = sorted(int(row["argument"]) for row in rows if row["operation"] == "RUN")
    moved = sorted(int(row["argument"]) for row in rows if row["operation"] == "MOVE")
    assert ran == list(range(len(PROBLEM.tasks)))
    assert moved == list(range(len(PLAN.transfers)))
    assert {row["operation"] for row in rows} == {"WAIT", "SIGNAL", "RUN", "MOVE"}
    assert min(int(row["planned_cycle"]) for row in rows if row["operation"] == "RUN") == 49


@pytest.mark.parametrize("hostile", [False, True])
def test_nothing_overlaps_on_a_track(hostile: bool) -> None:
    given = with_hostile_names() if hostile else subject()
    trace = json.loads(perfetto(given)["trace.json"])
    tracks = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    on_its_way = {e["id"]: e["ts"] for e in trace["traceEvents"] if e["ph"] == "b"}
    assert on_its_way == {move.index: move.sent for move in given.plan.transfers}
    assert sum(len(spans) for (pid, _), spans in tracks.items() if pid == CORES) == 5
    assert sum(len(spans) for (pid, _), spans in tracks.items() if pid == CHANNELS) == 13


def test_slices_say_where_their_operands_lie() -> None:
    given = subject()
    slices = [e for e in json.loads(perfetto(given)["trace.json"])["traceEvents"] if e["ph"] == "X"]
    for event in slices:
        says = event["args"]
        if event["cat"] == "task":
            placement = given.plan.placements[says["task"]]
            indices, places = (*placement.reads, *placement.writes), says["reads"] + says["writes"]
        else:
            move = given.plan.transfers[says["transfer"]]
            indices, places = (move.source, *move.destinations), [says["from"], *says["to"]]
        for index, place in zip(indices, places, strict=True):
            residency = given.plan.residencies[index]
            memory = given.problem.machine.memories[residency.memory].name
            assert place.startswith(f"{memory}+{residency.offset:#x}, {residency.bytes} B of ")


def test_counters_of_the_trace_are_the_live_bytes() -> None:
    trace = json.loads(perfetto(subject())["trace.json"])
    counted = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    spm0 = [(event["ts"], event["args"]["bytes"]) for event in counted if event["name"] == "spm0"]
    assert spm0 == [(0, 64), (14, 128), (49, 192), (69, 32), (79, 32), (97, 0)]
    assert trace["otherData"]["plan_sha256"] == subject().origin["plan_sha256"]
