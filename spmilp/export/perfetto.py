"""``trace.json``: the plan as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

One microsecond of the trace is one cycle. Each core and each DMA channel is a thread of its own, so
that nothing overlaps on a track: a transfer is there until all is sent, and its latency, in which
the channel may have begun the next, is an asynchronous slice. The live bytes of each memory are a
counter. The arguments of a slice are what it reads and writes, where and how much.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from spmilp.export.subject import Subject
from spmilp.plan.memory import live_bytes
from spmilp.plan.running import inferences_at_once, running
from spmilp.units import Cycles, ResidencyIdx

TITLE = ("chrome-trace", "2.0")

PERIODS = 3
"""Periods of a stream, beyond those that an inference takes."""

CORES, CHANNELS, MEMORIES = 1, 2, 3
"""Numbers of the processes that group the tracks."""

Event: TypeAlias = dict[str, Any]
Tracks: TypeAlias = Mapping[tuple[int, int], int]
"""The number of each channel, of an engine, that moves something."""


def perfetto(subject: Subject) -> dict[str, bytes]:
    """Return the file; of a stream, of its prologue and inferences up to some that all overlap."""
    origin, subject = subject.fields(TITLE), of_some_inferences(subject)
    used = sorted({(move.engine, move.channel) for move in subject.plan.transfers})
    tracks = {channel: number for number, channel in enumerate(used)}
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {**origin, "unit": "1 us is 1 cycle"},
        "traceEvents": [*_names(subject, tracks), *_work(subject, tracks), *_counters(subject)],
    }
    return {"trace.json": msgspec.json.encode(trace)}


def of_some_inferences(subject: Subject) -> Subject:
    """Return a plan of its own of a stream: its prologue and inferences up to some that overlap."""
    if (stream := subject.plan.stream) is None:
        return subject
    inferences = inferences_at_once(subject.plan, stream) + PERIODS
    runs = running(subject.problem, subject.plan, inferences)
    return Subject(problem=runs.problem, plan=runs.plan)


def _names(subject: Subject, tracks: Tracks) -> Iterator[Event]:
    machine = subject.problem.machine
    for pid, name in ((CORES, "cores"), (CHANNELS, "DMA channels"), (MEMORIES, "live bytes")):
        yield _meta("process_name", pid, 0, name)
    for core in machine.cores:
        yield _meta("thread_name", CORES, core.index, core.name)
    for (engine, channel), number in tracks.items():
        yield _meta("thread_name", CHANNELS, number, f"{machine.engines[engine].name}:{channel}")


def _meta(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _work(subject: Subject, tracks: Tracks) -> Iterator[Event]:
    """Yield a slice for each task and each transfer, and for the latency of a transfer."""
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
        yield _slice(task.name, track, placement.start, placement.end, says)
    for move in plan.transfers:
        says = {
            "transfer": move.index,
            "bytes": subject.problem.slices[move.slice].bytes,
            "from": _place(subject, move.source),
            "to": [_place(subject, end) for end in move.destinations],
            "setup": subject.problem.machine.engines[move.engine].setup,
        }
        track = {"cat": "transfer", "pid": CHANNELS, "tid": tracks[move.engine, move.channel]}
        name = subject.name(plan.residencies[move.source])
        yield _slice(name, track, move.start, move.sent, says)
        if move.end > move.sent:
            way = {**track, "cat": "latency", "id": move.index, "name": f"{name} on its way"}
            yield from ({"ph": "b", **way, "ts": move.sent}, {"ph": "e", **way, "ts": move.end})


def _slice(name: str, track: Event, start: Cycles, end: Cycles, says: Event) -> Event:
    return {"ph": "X", "name": name, **track, "ts": start, "dur": end - start, "args": says}


def _place(subject: Subject, index: ResidencyIdx) -> str:
    """Return where a residency lies and what of it: ``l1+0x40, 128 B of conv1``."""
    residency = subject.plan.residencies[index]
    memory = subject.problem.machine.memories[residency.memory].name
    return f"{memory}+{residency.offset:#x}, {residency.bytes} B of {subject.name(residency)}"


def _counters(subject: Subject) -> Iterator[Event]:
    for memory in subject.problem.machine.memories:
        here = [each for each in subject.plan.residencies if each.memory == memory.index]
        track = {"ph": "C", "name": memory.name, "pid": MEMORIES}
        for cycle, total in zip(*live_bytes(here), strict=True):
            yield {**track, "ts": cycle, "args": {"bytes": total}}
