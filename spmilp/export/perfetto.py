"""``trace.json``: the plan as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

One microsecond of the trace is one cycle. Each core and each DMA channel is a thread of its own, so
that nothing overlaps on a track; the live bytes of each memory are a counter; arrows lead from a
transfer to the tasks that read what it brings. The arguments of a slice are what it reads and
writes, where and how much, and what it had to wait for.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import msgspec

from spmilp.explaining.chain import Cause, causes_of
from spmilp.export.subject import Subject
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Placement, Transfer
from spmilp.units import ResidencyIdx

TITLE = ("chrome-trace", "1.1")

CORES, CHANNELS, MEMORIES = 1, 2, 3
"""Numbers of the processes that group the tracks."""

Event: TypeAlias = dict[str, Any]
Tracks: TypeAlias = Mapping[tuple[int, int], int]
"""The number of each channel, of an engine, that moves something."""


def perfetto(subject: Subject) -> dict[str, bytes]:
    """Return the file."""
    used = sorted({(move.engine, move.channel) for move in subject.plan.transfers})
    tracks = {channel: number for number, channel in enumerate(used)}
    events = [
        *_names(subject, tracks),
        *_work(subject, tracks),
        *_arrows(subject, tracks),
        *_counters(subject),
    ]
    head = {
        "displayTimeUnit": "ms",
        "otherData": {**subject.fields(TITLE), "unit": "1 us is 1 cycle"},
    }
    rows = b",\n".join(map(msgspec.json.encode, events))
    opening = msgspec.json.encode(head)[:-1]
    return {"trace.json": opening + b', "traceEvents": [\n' + rows + b"\n]}\n"}


def _names(subject: Subject, tracks: Tracks) -> Iterator[Event]:
    machine = subject.problem.machine
    for pid, name in ((CORES, "cores"), (CHANNELS, "DMA channels"), (MEMORIES, "live bytes")):
        yield _meta("process_name", pid, 0, name)
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for core in machine.cores:
        yield _meta("thread_name", CORES, core.index, core.name)
    for (engine, channel), tid in tracks.items():
        yield _meta("thread_name", CHANNELS, tid, f"{machine.engines[engine].name}:{channel}")


def _meta(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _work(subject: Subject, tracks: Tracks) -> Iterator[Event]:
    """Yield a slice for each task and each transfer."""
    plan, causes = subject.plan, causes_of(subject.analysed)
    for placement in plan.placements:
        task = subject.problem.tasks[placement.task]
        says = {
            "task": task.index,
            "operator": task.tile.of if task.tile else task.name,
            "reads": [_place(subject, read) for read in placement.reads],
            "writes": [_place(subject, write) for write in placement.writes],
            "waited for": _reasons(subject, causes[placement.task]),
        }
        track = {"cat": "task", "pid": CORES, "tid": placement.core}
        yield _slice(task.name, track, placement, says)
    for move, waited in zip(plan.transfers, causes[len(plan.placements) :], strict=True):
        says = {
            "transfer": move.index,
            "bytes": subject.problem.slices[move.slice].bytes,
            "from": _place(subject, move.source),
            "to": [_place(subject, end) for end in move.destinations],
            "waited for": _reasons(subject, waited),
        }
        track = {"cat": "transfer", "pid": CHANNELS, "tid": tracks[move.engine, move.channel]}
        yield _slice(subject.name(plan.residencies[move.source]), track, move, says)


def _slice(name: str, track: Event, during: Placement | Transfer, says: Event) -> Event:
    times = {"ts": during.start, "dur": during.end - during.start}
    return {"ph": "X", "name": name, **track, **times, "args": says}


def _place(subject: Subject, index: ResidencyIdx) -> str:
    """Return where a residency lies and what of it: ``l1+0x40, 128 B of conv1``."""
    residency = subject.plan.residencies[index]
    memory = subject.problem.machine.memories[residency.memory].name
    return f"{memory}+{residency.offset:#x}, {residency.bytes} B of {subject.name(residency)}"


def _reasons(subject: Subject, causes: Sequence[Cause]) -> list[str]:
    """Return what kept a slice from starting earlier, the binding cause first."""
    tasks, found = len(subject.plan.placements), []
    for cause in causes:
        number = cause.activity
        who = f"task {number}" if number < tasks else f"transfer {number - tasks}"
        found.append(f"{cause.wait}: {who} until {cause.until}")
    return found


def _arrows(subject: Subject, tracks: Tracks) -> Iterator[Event]:
    """Bind the end of each transfer to the tasks that read a residency it fills."""
    plan, numbers = subject.plan, count()
    filler = {end: move.index for move in plan.transfers for end in move.destinations}
    for placement in plan.placements:
        for index in sorted({filler[read] for read in placement.reads if read in filler}):
            move, both = plan.transfers[index], {"name": "data", "cat": "data", "id": next(numbers)}
            start = {"pid": CHANNELS, "tid": tracks[move.engine, move.channel]}
            end = {"pid": CORES, "tid": placement.core, "ts": placement.start, "bp": "e"}
            # An arrow begins at the event on its track that its time lies in.
            yield {"ph": "s", **both, **start, "ts": move.end - 1}
            yield {"ph": "f", **both, **end}


def _counters(subject: Subject) -> Iterator[Event]:
    for memory, residencies in subject.packed_residencies().items():
        name = subject.problem.machine.memories[memory].name
        for cycle, total in zip(*live_bytes(residencies), strict=True):
            yield {"ph": "C", "name": name, "pid": MEMORIES, "ts": cycle, "args": {"bytes": total}}
