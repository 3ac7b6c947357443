"""``trace.json``: the plan as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

One microsecond of the trace is one cycle. Each core and each DMA channel is a thread of its own, so
that nothing overlaps on a track; the live bytes of each memory are a counter; arrows lead from a
transfer to the tasks that read what it brings. The arguments of a slice are what it reads and
writes, where and how much.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, TypeAlias

import msgspec

from spmilp.export.subject import Subject
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Placement, Transfer
from spmilp.units import ResidencyIdx

TITLE = ("chrome-trace", "1.2")

CORES, CHANNELS, MEMORIES = 1, 2, 3
"""Numbers of the processes that group the tracks."""

Event: TypeAlias = dict[str, Any]


def perfetto(subject: Subject) -> dict[str, bytes]:
    """Return the file."""
    used = sorted({(move.engine, move.channel) for move in subject.plan.transfers})
    tracks = {channel: number for number, channel in enumerate(used)}
    channels = {
        move.index: {"pid": CHANNELS, "tid": tracks[move.engine, move.channel]}
        for move in subject.plan.transfers
    }
    events = [
        *_names(subject, used),
        *_work(subject, channels),
        *_arrows(subject, channels),
        *_counters(subject),
    ]
    head = {
        "displayTimeUnit": "ms",
        "otherData": {**subject.fields(TITLE), "unit": "1 us is 1 cycle"},
    }
    rows = b",\n".join(map(msgspec.json.encode, events))
    opening = msgspec.json.encode(head)[:-1]
    return {"trace.json": opening + b', "traceEvents": [\n' + rows + b"\n]}\n"}


def _names(subject: Subject, used: list[tuple[int, int]]) -> Iterator[Event]:
    machine = subject.problem.machine
    for pid, name in ((CORES, "cores"), (CHANNELS, "DMA channels"), (MEMORIES, "live bytes")):
        yield _meta("process_name", pid, 0, name)
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for core in machine.cores:
        yield _meta("thread_name", CORES, core.index, core.name)
    for number, (engine, channel) in enumerate(used):
        yield _meta("thread_name", CHANNELS, number, f"{machine.engines[engine].name}:{channel}")


def _meta(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _work(subject: Subject, channels: dict[int, Event]) -> Iterator[Event]:
    """Yield a slice for each task and each transfer."""
    plan = subject.plan
    for placement in plan.placements:
        task = subject.problem.tasks[placement.task]
        says = {
            "task": task.index,
            "operator": task.tile.of if task.tile else task.name,
            "reads": [_place(subject, read) for read in placement.reads],
            "writes": [_place(subject, write) for write in placement.writes],
        }
        track = {"cat": "task", "pid": CORES, "tid": placement.core}
        yield _slice(task.name, track, placement, says)
    for move in plan.transfers:
        says = {
            "transfer": move.index,
            "bytes": subject.problem.slices[move.slice].bytes,
            "from": _place(subject, move.source),
            "to": [_place(subject, end) for end in move.destinations],
        }
        track = {"cat": "transfer", **channels[move.index]}
        yield _slice(subject.name(plan.residencies[move.source]), track, move, says)


def _slice(name: str, track: Event, during: Placement | Transfer, says: Event) -> Event:
    times = {"ts": during.start, "dur": during.end - during.start}
    return {"ph": "X", "name": name, **track, **times, "args": says}


def _place(subject: Subject, index: ResidencyIdx) -> str:
    """Return where a residency lies and what of it: ``l1+0x40, 128 B of conv1``."""
    residency = subject.plan.residencies[index]
    memory = subject.problem.machine.memories[residency.memory].name
    return f"{memory}+{residency.offset:#x}, {residency.bytes} B of {subject.name(residency)}"


def _arrows(subject: Subject, channels: dict[int, Event]) -> Iterator[Event]:
    """Bind the end of each transfer to the tasks that read a residency it fills."""
    plan, numbers = subject.plan, count()
    filler = {end: move.index for move in plan.transfers for end in move.destinations}
    for placement in plan.placements:
        for index in sorted({filler[read] for read in placement.reads if read in filler}):
            both = {"name": "data", "cat": "data", "id": next(numbers)}
            end = {"pid": CORES, "tid": placement.core, "ts": placement.start, "bp": "e"}
            # An arrow begins at the event on its track that its time lies in.
            yield {"ph": "s", **both, **channels[index], "ts": plan.transfers[index].end - 1}
            yield {"ph": "f", **both, **end}


def _counters(subject: Subject) -> Iterator[Event]:
    for memory in subject.problem.machine.memories:
        here = [each for each in subject.plan.residencies if each.memory == memory.index]
        track = {"ph": "C", "name": memory.name, "pid": MEMORIES}
        for cycle, total in zip(*live_bytes(here), strict=True):
            yield {**track, "ts": cycle, "args": {"bytes": total}}
