"""The model for Netron, the trace, the command lists."""

import csv
import json
from collections import defaultdict
from io import StringIO
from itertools import pairwise

import numpy as np
import onnx
import pytest

from checker.worked_example import PLAN, PROBLEM
from export.subjects import lowered, subject, with_hostile_names
from spmilp.export.command_lists import command_lists
from spmilp.export.netron import netron
from spmilp.export.perfetto import CHANNELS, CORES, perfetto


def test_netron_sees_cores_and_addresses_and_the_graph_is_the_same() -> None:
    given = lowered("ds_cnn_int8", 5, 1)
    assert given.model is not None
    before = onnx.load_model_from_string(given.model)
    after = onnx.load_model_from_string(netron(given)["placed.onnx"])
    onnx.checker.check_model(after)
    assert [node.op_type for node in after.graph.node] == [n.op_type for n in before.graph.node]
    by_kind = defaultdict(list)
    for node in after.graph.node:
        by_kind[node.op_type].append({prop.key: prop.value for prop in node.metadata_props})
    kinds = {"Conv": by_kind["Conv"], "Gemm": by_kind["Gemm"]}
    assert all(props["spmilp.cores"] == "core0" for each in kinds.values() for props in each)
    assert int(by_kind["Conv"][0]["spmilp.tasks"]) > 1
    entry = {prop.key: prop.value for prop in after.graph.input[0].metadata_props}
    assert entry["spmilp.dram"].startswith("dram+0x")
    assert {prop.key: prop.value for prop in after.metadata_props}["spmilp.plan_sha256"]


@pytest.mark.parametrize("hostile", [False, True])
def test_nothing_overlaps_on_a_track_and_arrows_lead_forward(hostile: bool) -> None:
    given = with_hostile_names() if hostile else subject()
    trace = json.loads(perfetto(given)["trace.json"])
    tracks = defaultdict(list)
    arrows: defaultdict[int, list[dict]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        if event["ph"] in "sf":
            arrows[event["id"]].append(event)
    for spans in tracks.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert sum(len(spans) for (pid, _), spans in tracks.items() if pid == CORES) == 5
    assert sum(len(spans) for (pid, _), spans in tracks.items() if pid == CHANNELS) == 13
    assert len(arrows) == 6
    for start, end in arrows.values():
        inside = tracks[start["pid"], start["tid"]]
        assert any(first <= start["ts"] < last for first, last in inside)
        assert start["ts"] < end["ts"]
        assert any(first == end["ts"] for first, _ in tracks[end["pid"], end["tid"]])


def test_slices_say_where_their_operands_lie_and_what_they_waited_for() -> None:
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
    started_late = [event for event in slices if event["ts"] > 0]
    assert started_late
    assert all(event["args"]["waited for"] for event in started_late)


def test_counters_of_the_trace_are_the_live_bytes() -> None:
    trace = json.loads(perfetto(subject())["trace.json"])
    counted = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    spm0 = [(event["ts"], event["args"]["bytes"]) for event in counted if event["name"] == "spm0"]
    assert spm0 == [(0, 64), (14, 128), (49, 192), (69, 32), (79, 32), (97, 0)]
    assert trace["otherData"]["plan_sha256"] == subject().origin["plan_sha256"]


def test_the_command_lists_name_every_task_and_transfer_once() -> None:
    text = command_lists(with_hostile_names())["commands.csv"].decode("ascii")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    rows = list(csv.DictReader(StringIO("".join(lines))))
    ran = sorted(int(row["argument"]) for row in rows if row["operation"] == "RUN")
    moved = sorted(int(row["argument"]) for row in rows if row["operation"] == "MOVE")
    assert ran == list(range(len(PROBLEM.tasks)))
    assert moved == list(range(len(PLAN.transfers)))
    assert {row["operation"] for row in rows} == {"WAIT", "SIGNAL", "RUN", "MOVE"}
    starts = np.array([int(row["planned_cycle"]) for row in rows if row["operation"] == "RUN"])
    assert starts.min() == 49
