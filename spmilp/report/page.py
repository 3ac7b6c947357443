"""The report as one text that needs nothing else: no file, no server, no network.

Scripts get the plan as tables of columns, everything else by index."""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from spmilp.explaining.chain import Part, Wait
from spmilp.explaining.slow import Analysis, analyse, of_chain, of_phase
from spmilp.explaining.usage import Beyond, Excess, Idle, TensorTraffic
from spmilp.files import write_atomically
from spmilp.machine.machine import Memory
from spmilp.plan.plan import Plan
from spmilp.problem.problem import BufferKind, Problem
from spmilp.report.answer_table import Row
from spmilp.report.figures import KIND_COLOURS, OPERATOR_COLOURS, PART_COLOURS, operators_of
from spmilp.report.search_log import LogEntry

NONE = -1
"""An index that there is not."""

MOST_EXCESS = 50
"""Rows of DRAM traffic beyond the compulsory, the largest; operators without tiles have many."""


def contents(analysis: Analysis) -> dict[str, Any]:
    """Return everything that the page shows of a plan."""
    problem, plan = analysis.subject.problem, analysis.subject.plan
    machine = problem.machine
    operators = operators_of(problem)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(operators.values()))}
    return {
        "makespan": max(analysis.subject.ends, default=0),
        "frequency": machine.frequency,
        "cores": [core.name for core in machine.cores],
        "core_memory": [core.memory for core in machine.cores],
        "engines": [{"name": each.name, "channels": each.channels} for each in machine.engines],
        "links": [f"{link.source} → {link.target}" for link in machine.links],
        "link_rates": analysis.subject.rates[0],
        "memories": [_memory(each) for each in machine.memories],
        "operators": list(numbers),
        "tasks": _tasks(problem, plan, [numbers[operators[task.index]] for task in problem.tasks]),
        "transfers": _transfers(analysis),
        "residencies": _residencies(analysis),
        "slices": {
            "buffer": [each.buffer for each in problem.slices],
            "bytes": [each.bytes for each in problem.slices],
        },
        "buffers": _buffers(analysis),
        "causes": _causes(analysis),
        "chain": [link.activity for link in analysis.chain.links],
        "chain_cycles": list(analysis.chain.cycles().values()),
        "chain_text": of_chain(analysis.chain),
        "phases": [
            {"start": each.start, "end": each.end, "part": _number(Part, each.part)}
            | {"chain": list(each.chain.values()), "text": of_phase(each, machine)}
            for each in analysis.phases
        ],
        "core_times": [
            {"tasks": each.tasks, "busy": each.busy, "idle": list(each.idle().values())}
            | {"spans": [(span.start, span.end, _number(Idle, span.idle)) for span in each.spans]}
            for each in analysis.cores
        ],
        "spaces": [each._asdict() for each in analysis.spaces],
        "traffic": [_plain(row) for row in analysis.traffic],
        "excess": [_plain(row) for row in analysis.excess[:MOST_EXCESS]],
        "words": {
            "parts": [part.words for part in Part],
            "waits": [wait.words for wait in Wait],
            "idles": [idle.words for idle in Idle],
            "beyond": {kind.value: kind.words for kind in Beyond},
        },
        "colours": {
            "operators": OPERATOR_COLOURS,
            "parts": [PART_COLOURS[part] for part in Part],
            "kinds": KIND_COLOURS,
        },
    }


def _plain(row: TensorTraffic | Excess) -> dict[str, Any]:
    return {
        name: str(value) if isinstance(value, StrEnum) else value
        for name, value in row._asdict().items()
    }


def _number(kind: type[StrEnum], member: StrEnum) -> int:
    return list(kind).index(member)


def _columns(names: str, rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return a table as a list for each column."""
    columns: dict[str, list[Any]] = {name: [] for name in names.split()}
    for row in rows:
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


def _memory(memory: Memory) -> Mapping[str, Any]:
    return {
        "name": memory.name,
        "kind": str(memory.kind),
        "size": memory.size,
        "reserved": [(taken.start, taken.end) for taken in memory.reserved],
        "banks": memory.banks,
    }


def _tasks(problem: Problem, plan: Plan, operators: Sequence[int]) -> dict[str, list[Any]]:
    rows = (
        (
            problem.tasks[each.task].name,
            operators[each.task],
            each.core,
            each.start,
            each.end,
            each.reads,
            each.writes,
            NONE if each.scratch is None else each.scratch,
        )
        for each in plan.placements
    )
    return _columns("name operator core start end reads writes scratch", rows)


def _transfers(analysis: Analysis) -> dict[str, list[Any]]:
    subject = analysis.subject
    first = len(subject.plan.placements)
    parts = {part: number for number, part in enumerate(Part)}
    rows = (
        (
            move.slice,
            move.source,
            move.destinations,
            move.engine,
            move.channel,
            move.start,
            move.end,
            move.route,
            subject.held_rates[move.index],
            parts[subject.parts[first + move.index]],
        )
        for move in subject.plan.transfers
    )
    return _columns("slice source ends engine channel start end route held part", rows)


def _residencies(analysis: Analysis) -> dict[str, list[Any]]:
    subject = analysis.subject
    below = {new: old for old, new in analysis.in_place}
    rows = []
    for each in subject.plan.residencies:
        filler = subject.filler(each.index)
        rows.append(
            (
                NONE if each.slice is None else each.slice,
                each.memory,
                each.offset,
                each.bytes,
                each.start,
                each.end,
                NONE if filler is None else filler,
                below.get(each.index, NONE),
            )
        )
    return _columns("slice memory offset bytes start end filler below", rows)


def _buffers(analysis: Analysis) -> dict[str, list[Any]]:
    kinds = {kind: number for number, kind in enumerate(BufferKind)}
    subject = analysis.subject
    rows = (
        (each.name, kinds[each.kind], subject.tensor_name(each.index))
        for each in subject.problem.buffers
    )
    return _columns("name kind tensor", rows)


def _causes(analysis: Analysis) -> dict[str, list[Any]]:
    """Return all causes in one table; ``first`` says at which row those of an activity begin."""
    waits = {wait: number for number, wait in enumerate(Wait)}
    first, rows = [0], []
    for causes in analysis.causes:
        for cause in causes:
            residency = NONE if cause.residency is None else cause.residency
            link = NONE if cause.link is None else cause.link
            rows.append((waits[cause.wait], cause.until, cause.activity, residency, link))
        first.append(len(rows))
    return {"first": first, **_columns("wait until activity residency link", rows)}


SCRIPTS = ("model", "view", "canvas", "timeline", "memory", "details", "tables", "main")
"""The scripts, in the order in which they need each other."""

HEIGHT = 900
"""Pixels of a page inside a notebook."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report; a notebook shows it."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page, and return where it is.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        write_atomically(path, self.html)
        return Path(path)

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} characters)"

    def _repr_html_(self) -> str:
        style = "width:100%;border:1px solid #ccc"
        return f'<iframe srcdoc="{escape(self.html)}" height="{HEIGHT}" style="{style}"></iframe>'


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above everything else, and what only the solve knows.

    Parameters
    ----------
    rows
        The figures of the answer.
    log
        What the search has found, where it is known.
    """

    title: str
    rows: Sequence[Row]
    log: Sequence[LogEntry] = ()


def report_page(problem: Problem, plan: Plan, heading: Heading) -> Page:
    """Return the report on a plan that the checker has accepted.

    Names from files reach the page in a compressed table and are shown as text: they cannot be
    taken for markup. The page's own policy forbids it every request.
    """
    shown: dict[str, Any] = contents(analyse(problem, plan))
    shown |= {"rows_of_answer": heading.rows, "log": [astuple(each) for each in heading.log]}
    packed = gzip.compress(json.dumps(shown, separators=(",", ":")).encode(), 6, mtime=0)
    parts = {
        "title": escape(heading.title),
        "style": _asset("page.css"),
        "script": "\n".join(_asset(f"{name}.js") for name in SCRIPTS),
        "plan": b64encode(packed).decode(),
    }
    return Page(re.sub(r"{{(\w+)}}", lambda mark: parts[mark[1]], _asset("page.html")))


def _asset(name: str) -> str:
    return (files("spmilp.report") / "assets" / name).read_text(encoding="utf-8")
