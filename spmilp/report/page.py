"""The report as one HTML page that needs nothing else: no file, no server, no network.

The page's scripts get the plan as tables, each a list per column; rows refer to each other by
index.
"""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from html import escape
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any

from spmilp.explaining.chain import (
    AnalysedPlan,
    Part,
    Reason,
    Wait,
    cycles_by_binding,
    cycles_by_part,
    steps_of,
    times_of_cores,
)
from spmilp.explaining.slow import said_of
from spmilp.explaining.usage import Beyond, excess_of, traffic_of
from spmilp.files import write_atomically
from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import live_bytes, pairs_in_place
from spmilp.plan.plan import Plan, Residency
from spmilp.plan.turns import residencies_of_period
from spmilp.problem.problem import BufferKind, Problem
from spmilp.report.figures import KIND_COLOURS, OPERATOR_COLOURS, PART_COLOURS
from spmilp.report.period import NONE, in_one_period
from spmilp.report.search_log import LogEntry
from spmilp.report.summary import Row
from spmilp.units import MemoryIdx

MOST_EXCESS = 50
"""Rows of DRAM traffic beyond the compulsory, the largest; operators without tiles have many."""


def contents(subject: AnalysedPlan) -> dict[str, Any]:
    """Return everything that the page shows of a plan that the checker has accepted."""
    problem, plan, machine = subject.problem, subject.plan, subject.problem.machine
    causes = [cause for some in subject.causes for cause in some]
    below = {new: old for _, old, new in pairs_in_place(problem, plan)}
    parts, kinds = list(Part), list(BufferKind)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(subject.operators))}
    lying = [each for each, _ in residencies_of_period(plan)]
    shown = {
        "makespan": max(subject.ends, default=0),
        "frequency": machine.frequency,
        "cores": [core.name for core in machine.cores],
        "core_memory": [core.memory for core in machine.cores],
        "engines": [{"name": each.name, "channels": each.channels} for each in machine.engines],
        "links": [f"{link.source} → {link.target}" for link in machine.links],
        "link_rates": [float(link.rate) for link in machine.links],
        "memories": [
            {"name": each.name, "kind": str(each.kind), "size": each.size, "banks": each.banks}
            | {"reserved": [(taken.start, taken.end) for taken in each.reserved]}
            for each in machine.memories
        ],
        "operators": list(numbers),
        "tasks": {
            **_columns(plan.placements, "core", "start", "end", "reads", "writes"),
            "name": [each.name for each in problem.tasks],
            "operator": [numbers[name] for name in subject.operators],
            "scratch": [_index(each.scratch) for each in plan.placements],
        },
        "transfers": {
            **_columns(plan.transfers, "slice", "source", "engine", "channel", "start", "end"),
            **_columns(plan.transfers, "route"),
            "ends": [each.destinations for each in plan.transfers],
            "sends": subject.sends,
            "held": list(map(float, subject.held_rates)),
            "part": [parts.index(part) for part in subject.parts[len(plan.placements) :]],
        },
        "residencies": {
            **_columns(plan.residencies, "memory", "offset", "bytes", "start", "end"),
            "slice": [_index(each.slice) for each in plan.residencies],
            "filler": [_index(subject.filler(each.index)) for each in plan.residencies],
            "below": [below.get(each.index, NONE) for each in plan.residencies],
        },
        "slices": _columns(problem.slices, "buffer", "bytes"),
        "buffers": {
            "name": [each.name for each in problem.buffers],
            "kind": [kinds.index(each.kind) for each in problem.buffers],
            "tensor": [subject.tensor_name(each.index) for each in problem.buffers],
        },
        # All causes in one table; those of an activity begin at the row that ``first`` says.
        "causes": {
            "first": [*accumulate(map(len, subject.causes), initial=0)],
            "wait": [list(Wait).index(cause.wait) for cause in causes],
            **_columns(causes, "until", "activity"),
            "residency": [_index(cause.residency) for cause in causes],
            "link": [_index(cause.link) for cause in causes],
        },
        "chain": [link.activity for link in subject.chain],
        "chain_cycles": list(cycles_by_part(subject.chain).values()),
        "bindings": [
            {"cycles": cycles, "text": said_of(machine, binding)}
            for binding, cycles in cycles_by_binding(steps_of(subject, subject.chain))
        ],
        "core_times": [
            {"tasks": each.tasks, "busy": each.busy, "idle": list(each.by_reason().values())}
            for each in times_of_cores(subject)
        ],
        "spaces": [
            _space(memory.index, [each for each in lying if each.memory == memory.index])
            for memory in machine.memories
            if memory.kind is not MemoryKind.DRAM
        ],
        "traffic": traffic_of(subject),
        "excess": [each._asdict() for each in excess_of(subject)[:MOST_EXCESS]],
        "words": {
            "parts": [part.words for part in Part],
            "waits": [wait.words for wait in Wait],
            "reasons": [reason.of_any() for reason in Reason],
            "beyond": {kind.value: kind.words for kind in Beyond},
        },
        "colours": {
            "operators": OPERATOR_COLOURS,
            "parts": [PART_COLOURS[part] for part in Part],
            "kinds": KIND_COLOURS,
        },
    }
    return shown if plan.stream is None else in_one_period(shown, subject, plan.stream)


def _space(memory: MemoryIdx, residencies: Sequence[Residency]) -> dict[str, Any]:
    """Return the live bytes of a memory over time, and the highest address in use."""
    cycles, live = live_bytes(residencies)
    tops = (max(each.offset, *each.instances, 0) + each.bytes for each in residencies)
    peak = max(tops, default=0)
    at_peak = (each.start for each in residencies if each.offset + each.bytes == peak)
    return {
        "memory": memory,
        "cycles": cycles,
        "live": live,
        "peak": peak,
        "peak_at": min(at_peak, default=0),
        "live_peak": max(live, default=0),
    }


def _columns(rows: Sequence[object], *names: str) -> dict[str, list[Any]]:
    """Return fields of rows as a list for each."""
    return {name: [getattr(row, name) for row in rows] for name in names}


def _index(index: int | None) -> int:
    return NONE if index is None else index


SCRIPTS = ("model", "view", "canvas", "timeline", "memory", "details", "tables", "main")
"""The scripts, in the order in which they need each other."""

HEIGHT = 900
"""Pixels of a page inside a notebook."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report; a notebook shows it."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page, and return where it is."""
        write_atomically(path, self.html)
        return Path(path)

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} characters)"

    def _repr_html_(self) -> str:
        style = "width:100%;border:1px solid #ccc"
        return f'<iframe srcdoc="{escape(self.html)}" height="{HEIGHT}" style="{style}"></iframe>'


def report_page(
    problem: Problem, plan: Plan, title: str, rows: Sequence[Row], log: Sequence[LogEntry] = ()
) -> Page:
    """Return the report on a plan that the checker has accepted.

    Names from files reach the page in a compressed table and are shown as text: they cannot be
    taken for markup. The page's own policy forbids it every request. The ``rows`` of the answer
    stand above everything else below the title.
    """
    shown: dict[str, Any] = contents(AnalysedPlan(problem=problem, plan=plan))
    shown |= {"rows_of_answer": rows, "log": [astuple(each) for each in log]}
    packed = gzip.compress(json.dumps(shown, separators=(",", ":")).encode(), 6, mtime=0)
    parts = {
        "title": escape(title),
        "style": _asset("page.css"),
        "script": "\n".join(_asset(f"{name}.js") for name in SCRIPTS),
        "plan": b64encode(packed).decode(),
    }
    return Page(re.sub(r"{{(\w+)}}", lambda mark: parts[mark[1]], _asset("page.html")))


def _asset(name: str) -> str:
    return (files("spmilp.report") / "assets" / name).read_text(encoding="utf-8")
