"""Workloads of tt-npe: read as tt-npe reads them, each transfer of a plan is there."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spmilp
from export.subjects import MODELS, subject
from spmilp.export.errors import ExportError
from spmilp.export.npe import npe, rectangles
from spmilp.export.subject import Subject
from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import read_machine

CHIP = b"""
arch_name: wormhole_b0
grid: {x_size: 10, y_size: 12}
dram: [[0-0, 0-1, 0-11], [5-2, 5-9, 5-10]]
functional_workers: [4-1, 6-1, 4-2, 6-2]
worker_l1_size: 1499136
dram_bank_size: 2147483648
"""
NUMBERS = {"packet_size", "num_packets", "phase_cycle_offset", "src_x", "src_y"}
UNICAST = {"dst_x", "dst_y"}
MULTICAST = {"mcast_start_x", "mcast_start_y", "mcast_end_x", "mcast_end_y"}


@cache
def planned() -> Subject:
    machine = read_machine(CHIP, "chip.yaml")
    result = spmilp.solve(MODELS / "ds_cnn_int8.onnx", machine, solver="list", time_limit=20)
    assert result.plan is not None
    return Subject(problem=result.problem, plan=result.plan)


def read(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the transfers of a workload, as loadJSONWorkloadFormat reads and validate checks."""
    workload = json.loads(content)
    assert isinstance(workload["golden_result"]["cycles"], int)
    for phase in workload["phases"]:
        for row in phase["transfers"]:
            ends = UNICAST if "dst_x" in row else MULTICAST
            assert row.keys() == NUMBERS | ends | {"noc_type", "noc_event_type"}
            assert all(isinstance(row[name], int) for name in NUMBERS | ends)
            assert all(0 <= row[name] < 10 for name in row if name.endswith("_x"))
            assert all(0 <= row[name] < 12 for name in row if name.endswith("_y"))
            assert 0 < row["packet_size"] <= 8192
            assert row["num_packets"] > 0
            assert row["phase_cycle_offset"] >= 0
            assert row["noc_type"] in ("NOC_0", "NOC_1")
            yield row


def tiles_of(row: dict[str, Any]) -> set[tuple[int, int]]:
    if "dst_x" in row:
        return {(row["dst_x"], row["dst_y"])}
    columns = range(row["mcast_start_x"], row["mcast_end_x"] + 1)
    return set(product(columns, range(row["mcast_start_y"], row["mcast_end_y"] + 1)))


def test_each_transfer_goes_from_its_tile_to_its_tiles_when_its_first_byte_arrives() -> None:
    made = planned()
    machine, plan = made.problem.machine, made.plan
    rows, kinds = read(npe(made)["npe.json"]), set()
    spms = {m.name: tuple(map(int, m.name.split("_")[1:])) for m in machine.spms}
    for move in plan.transfers:
        memories = [machine.memories[plan.residencies[i].memory] for i in move.destinations]
        left = {spms.get(memory.name) for memory in memories}
        is_dram = memories[0].kind is MemoryKind.DRAM
        source = machine.memories[plan.residencies[move.source].memory]
        used = {machine.links[link].source[:2] for link in move.route}
        while left:
            row = next(rows)
            size = made.problem.slices[move.slice].bytes
            assert size <= row["packet_size"] * row["num_packets"] < size + row["num_packets"]
            setup = machine.engines[move.engine].setup
            assert row["phase_cycle_offset"] - setup == move.start + move.end - move.sent
            assert row["noc_type"].replace("NOC_", "n") in used
            start = row["src_x"], row["src_y"]
            assert start == spms.get(source.name, start)
            assert source.name in spms or start in {(0, 1), (0, 11), (5, 2), (5, 9)}
            reached = tiles_of(row)
            if is_dram:
                assert reached <= {(0, 1), (0, 11), (5, 2), (5, 9)}
                left.clear()
            else:
                assert reached & set(spms.values()) <= left
                left -= reached
            reads = machine.engines[move.engine].owner in [memory.index for memory in memories]
            several = "mcast_end_x" in row
            kinds.add(row["noc_event_type"])
            alone = "READ" if reads else "WRITE_"
            assert row["noc_event_type"] == ("WRITE_MULTICAST" if several else alone)
    assert list(rows) == []
    assert kinds == {"READ", "WRITE_", "WRITE_MULTICAST"}
    assert npe(made) == npe(made)


def test_machines_without_opposed_tori_are_refused() -> None:
    with pytest.raises(ExportError, match=r"npe: routes of .* are of the kind shortest, expected"):
        npe(subject())


tiles = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1)


@given(workers=tiles, targets=tiles)
def test_rectangles_have_each_target_once_and_no_other_worker(
    workers: set[tuple[int, int]], targets: set[tuple[int, int]]
) -> None:
    workers |= targets
    seen: list[tuple[int, int]] = []
    for (left, top), (right, bottom) in rectangles(targets, workers):
        inside = set(product(range(left, right + 1), range(top, bottom + 1)))
        seen += sorted(inside & workers)
    assert sorted(seen) == sorted(targets)
