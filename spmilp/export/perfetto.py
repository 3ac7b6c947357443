"""``trace.json``: the plan as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

One microsecond of the trace is one cycle. Each core and each DMA channel is a thread of its own, so
that nothing overlaps on a track; the live bytes of each memory are a counter; arrows lead from a
transfer to the tasks that read what it brings. The arguments of a slice are what it reads and
writes, where and how much, and what it had to wait for.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from spmilp.explaining.chain import Cause, causes_of
from spmilp.export.subject import Subject
from spmilp.plan.memory import live_bytes
from spmilp.units import ResidencyIdx, TransferIdx

NAME, VERSION = "chrome-trace", "1.1"

CORES, CHANNELS, MEMORIES = 1, 2, 3
"""Numbers of the processes that group the tracks."""


def perfetto(subject: Subject) -> dict[str, bytes]:
    """Return the file."""
    causes = causes_of(subject.analysed)
    tasks = len(subject.plan.placements)
    events = [
        *_names(subject),
        *_tasks(subject, causes[:tasks]),
        *_transfers(subject, causes[tasks:]),
        *_arrows(subject),
        *_counters(subject),
    ]
    head = {
        "displayTimeUnit": "ms",
        "otherData": {**subject.stamp.fields(NAME, VERSION), "unit": "1 us is 1 cycle"},
    }
    rows = b",\n".join(map(msgspec.json.encode, events))
    opening = msgspec.json.encode(head)[:-1]
    return {"trace.json": opening + b', "traceEvents": [\n' + rows + b"\n]}\n"}


def _names(subject: Subject) -> Iterator[dict[str, Any]]:
    machine = subject.problem.machine
    for pid, name in ((CORES, "cores"), (CHANNELS, "DMA channels"), (MEMORIES, "live bytes")):
        yield _meta("process_name", pid, 0, name)
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for core in machine.cores:
        yield _meta("thread_name", CORES, core.index, core.name)
    tracks = _tracks(subject)
    for (engine, channel), tid in tracks.items():
        yield _meta("thread_name", CHANNELS, tid, f"{machine.engines[engine].name}:{channel}")


def _meta(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _tracks(subject: Subject) -> dict[tuple[int, int], int]:
    """Number the channels that move something."""
    used = sorted({(move.engine, move.channel) for move in subject.plan.transfers})
    return {channel: number for number, channel in enumerate(used)}


def _tasks(subject: Subject, causes: Sequence[Sequence[Cause]]) -> Iterator[dict[str, Any]]:
    for placement in subject.plan.placements:
        task = subject.problem.tasks[placement.task]
        yield {
            "ph": "X",
            "name": task.name,
            "cat": "task",
            "pid": CORES,
            "tid": placement.core,
            "ts": placement.start,
            "dur": placement.end - placement.start,
            "args": {
                "task": task.index,
                "operator": task.tile.of if task.tile else task.name,
                "reads": [_place(subject, read) for read in placement.reads],
                "writes": [_place(subject, write) for write in placement.writes],
                "waited for": _reasons(subject, causes[placement.task]),
            },
        }


def _transfers(subject: Subject, causes: Sequence[Sequence[Cause]]) -> Iterator[dict[str, Any]]:
    tracks = _tracks(subject)
    for move in subject.plan.transfers:
        yield {
            "ph": "X",
            "name": subject.name(subject.plan.residencies[move.source]),
            "cat": "transfer",
            "pid": CHANNELS,
            "tid": tracks[move.engine, move.channel],
            "ts": move.start,
            "dur": move.end - move.start,
            "args": {
                "transfer": move.index,
                "bytes": subject.problem.slices[move.slice].bytes,
                "from": _place(subject, move.source),
                "to": [_place(subject, end) for end in move.destinations],
                "waited for": _reasons(subject, causes[move.index]),
            },
        }


def _place(subject: Subject, index: ResidencyIdx) -> str:
    """Return where a residency lies and what of it: ``l1+0x40, 128 B of conv1``."""
    residency = subject.plan.residencies[index]
    memory = subject.problem.machine.memories[residency.memory].name
    return f"{memory}+{residency.offset:#x}, {residency.bytes} B of {subject.name(residency)}"


def _reasons(subject: Subject, causes: Sequence[Cause]) -> list[str]:
    """Return what kept a slice from starting earlier, the binding cause first."""
    tasks = len(subject.plan.placements)
    return [
        f"{cause.wait}: "
        + (
            f"task {cause.activity}"
            if cause.activity < tasks
            else f"transfer {cause.activity - tasks}"
        )
        + f" until {cause.until}"
        for cause in causes
    ]


def _arrows(subject: Subject) -> Iterator[dict[str, Any]]:
    """Bind the end of each transfer to the tasks that read a residency it fills."""
    filler: dict[ResidencyIdx, TransferIdx] = {
        end: move.index for move in subject.plan.transfers for end in move.destinations
    }
    tracks = _tracks(subject)
    number = 0
    for placement in subject.plan.placements:
        for move in sorted({filler[read] for read in placement.reads if read in filler}):
            transfer = subject.plan.transfers[move]
            start = {"pid": CHANNELS, "tid": tracks[transfer.engine, transfer.channel]}
            end = {"pid": CORES, "tid": placement.core, "ts": placement.start, "bp": "e"}
            both = {"name": "data", "cat": "data", "id": number}
            # An arrow begins at the event on its track that its time lies in.
            yield {"ph": "s", **both, **start, "ts": transfer.end - 1}
            yield {"ph": "f", **both, **end}
            number += 1


def _counters(subject: Subject) -> Iterator[dict[str, Any]]:
    for memory, residencies in subject.packed_residencies().items():
        name = subject.problem.machine.memories[memory].name
        for cycle, total in zip(*live_bytes(residencies), strict=True):
            counted = {"name": name, "pid": MEMORIES, "ts": cycle, "args": {"bytes": total}}
            yield {"ph": "C", **counted}
