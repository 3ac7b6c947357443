"""The trace: tracks without overlaps, places of operands, live bytes."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from export.subjects import subject, with_hostile_names
from spmilp.export.perfetto import CHANNELS, CORES, perfetto


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
