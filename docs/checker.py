"""Checks a plan: a second checker, in one file, written from ``docs/format.md`` alone.

    python docs/checker.py problem.json plan.json

It prints what breaks which rule. Exit code 0: the plan is valid; 1: it is not; 2: a file cannot be
read. It needs Python 3.11 and nothing else, and follows the page from top to bottom, so that it can
be ported: section 1 to 4 are `Reading`, section 2.2 is `Routes`, section 5 `Meaning`, section 6
`Rules`. It prefers being short to being fast.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from heapq import heappop, heappush
from math import lcm, prod
from pathlib import Path
from typing import Any, TypeAlias

LARGEST = 2**48
LONGEST = 2**63 - 1
QUANTITIES = ("makespan", "dram_traffic", "energy", "peak_spm", "period")


class RefusedError(Exception):
    """A file that no reader accepts; whether its plan is valid is no question."""


# ---------------------------------------------------------------------------------------- Reading

INTEGERS = {
    "amount": (0, LARGEST),
    "count": (1, LARGEST),
    "coordinate": (-LARGEST, LARGEST),
    "total": (0, LONGEST),
    "number": (-LONGEST - 1, LONGEST),
}
WORDS = {
    "level": ("dram", "shared", "spm"),
    "content": ("input", "weight", "intermediate", "partial", "output"),
    "quantity": QUANTITIES,
    "routing": ("round_trip", "shortest", "xy"),
    "controller": ("axi_dma_sg", "edma_tcd", "mchan", "mchan_v6", "epiphany", "aie_bd"),
    "a_problem": ("spmilp-problem",),
    "a_plan": ("spmilp-plan",),
}
TUPLES = {
    "pair": ("amount", "amount"),
    "interval": ("coordinate", "coordinate"),
    "position": ("coordinate", "coordinate"),
    "router": ("name", "position"),
    "counted": ("name", "count"),
    "priced": ("name", "amount"),
    "option": ("text", "text"),
}
LISTS = {"extents": "count", "corner": "amount", "box": "interval", "more": "amount"}
"""Lists of at most 32 elements; of instances 3 more."""

# Fields and their types, in the order of the format. A field with ? may be left out: then it is
# empty, or what stands behind =, or None, which may also be written as null.
OBJECTS = {
    "range": "start amount, end amount",
    "memory": "index amount, name name, kind level, size count|null, alignment count, "
    "reserved range[], banks count|null, energy_per_byte amount|null",
    "array": "dtype name, unroll counted[]",
    "kind": "index amount, name name, arrays array[], lanes counted[], launch amount, "
    "operators name[]|null, mac_energy priced[], workspace? priced[]",
    "core": "index amount, name name, kind amount, memory amount, position position|null",
    "link": "index amount, source name, target name, rate rate, latency amount, "
    "energy_per_byte amount|null",
    "engine": "index amount, name name, owner amount|null, reaches amount[]|null, loads flag, "
    "stores flag, channels count, setup amount, pipelined flag, rate rate, longest count|null, "
    "dimensions count|null, congruence count, multicast flag, descriptors count|null, "
    "controller? controller",
    "remote": "cycles_per_byte_hop ratio, longest_route count|null",
    "machine": "name name, description text, frequency count|null, memories memory[], "
    "kinds kind[], cores core[], links link[], engines engine[], routing routing, "
    "positions router[], remote remote|null, events count|null, event_maximum? count, "
    "unverified text[]",
    "source": "what text, sha256 text",
    "tensor": "index amount, name text, kind content, memory amount, shape extents, item count, "
    "state? amount, bytes? count",
    "place": "tensor amount, start corner",
    "tile": "of text, box box, axes? corner, reduction? interval",
    "buffer": "index amount, name text, kind content, shape extents, item? count=1, bytes? count, "
    "starts_in? amount, ends_in? amount, place? place, tile? tile",
    "slice": "index amount, buffer amount, start corner, extent extents, bytes count",
    "task": "index amount, name text, cycles count|null[], reads? amount[], writes? amount[], "
    "scratch? amount=0, in_place? pair[], after? amount[], energy? total|null[], tile? tile",
    "task_pin": "task amount, cores? amount[], not_before? amount=0, not_after? count",
    "buffer_pin": "buffer amount, memories amount[], address? amount, resident? flag=0",
    "pins": "forbidden? amount[], tasks? task_pin[], buffers? buffer_pin[]",
    "problem": "format a_problem, format_version text, name text, sources? source[], "
    "objective quantity[], machine machine, tensors tensor[], buffers buffer[], slices slice[], "
    "tasks task[], pins? pins",
    "meta": "tool? text, tool_version? text, problem? text, machine? text, model_sha256? text, "
    "machine_sha256? text, problem_sha256? text=",
    "solve": "solver text, options? option[], bound number, bound_source text, makespan total, "
    "dram_traffic total, energy total, peak_spm total, period? count",
    "address": "index amount, address amount",
    "run": "index amount, core amount, start amount, cycles count, reads? amount[], "
    "writes? amount[], scratch? amount",
    "residency": "index amount, slice? amount, memory amount, offset amount, bytes count, "
    "start amount, end count, filled_by_task? amount, filled_by_transfer? amount, "
    "instances? amount[]",
    "stream": "period count, begins? amount=0, instances? more[]",
    "transfer": "index amount, slice amount, source amount, destinations amount[], engine amount, "
    "channel amount, start amount, sent count, end count, route amount[]",
    "plan": "format a_plan, format_version text, meta meta, solve solve, tensors address[], "
    "tasks run[], residencies residency[], transfers transfer[], stream? stream",
}
WRITTEN = ("item", "sources")
"""Fields that canonical text has even if they say nothing."""


class Row:
    """An object of a file: its fields by name, in the order of the format.

    ``silent`` names those that canonical text does without.
    """

    __slots__ = ("__dict__", "silent")

    def __init__(self, fields: dict[str, Any], silent: Iterable[str] = ()) -> None:
        self.silent = set(silent)
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    @property
    def fields(self) -> dict[str, Any]:
        return self.__dict__


def read_value(kind: str, value: Any, where: str, tolerant: bool) -> Any:
    """Return a value of a type; a tolerant reader ignores unknown fields."""
    if kind.endswith("[]"):
        _need(isinstance(value, list), f"{where}: expected a list")
        return [read_value(kind[:-2], v, f"{where}.{i}", tolerant) for i, v in enumerate(value)]
    if kind.endswith("|null"):
        return None if value is None else read_value(kind[:-5], value, where, tolerant)
    if kind in OBJECTS:
        return _row(kind, value, where, tolerant)
    if kind in LISTS:
        most = 3 if kind == "more" else 32
        _need(isinstance(value, list) and len(value) <= most, f"{where}: expected {most} at most")
        return read_value(f"{LISTS[kind]}[]", value, where, tolerant)
    if kind in TUPLES:
        fits = isinstance(value, list) and len(value) == len(TUPLES[kind])
        _need(fits, f"{where}: expected {' and '.join(TUPLES[kind])}")
        return [read_value(k, v, where, tolerant) for k, v in zip(TUPLES[kind], value, strict=True)]
    if kind in ("rate", "ratio"):
        return _rate(value, where, may_be_0=kind == "ratio")
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        fits = type(value) is int and least <= value <= most
    elif kind in WORDS:
        fits = isinstance(value, str) and value in WORDS[kind]
    else:
        python = bool if kind == "flag" else str
        fits = isinstance(value, python) and (kind != "name" or value != "")
    _need(fits, f"{where}: expected {WORDS.get(kind, kind)}, got {ascii(value)[:60]}")
    return value


@cache
def _fields(kind: str) -> list[tuple[str, str, bool, Any]]:
    """Return name and type of each field of an object, whether it may be left out, its default."""
    found = []
    for field in OBJECTS[kind].split(", "):
        name, of = field.split(" ")
        of, has_default, default = of.partition("=")
        nothing: Any = [] if of.endswith("[]") else None
        if has_default:
            nothing = int(default) if default else ""
        elif name.endswith("?") and nothing is None:
            of = of if of.endswith("|null") else f"{of}|null"
        found.append((name.rstrip("?"), of, name.endswith("?"), nothing))
    return found


def _row(kind: str, value: Any, where: str, tolerant: bool) -> Row:
    _need(isinstance(value, dict), f"{where}: expected an object")
    found: dict[str, Any] = {}
    silent = set()
    for name, of, optional, nothing in _fields(kind):
        here = f"{where}.{name}".lstrip(".")
        _need(optional or name in value, f"{here}: is missing")
        found[name] = read_value(of, value[name], here, tolerant) if name in value else nothing
        if optional and found[name] == nothing and name not in WRITTEN:
            silent.add(name)
    unknown = sorted(value.keys() - found.keys())
    _need(tolerant or not unknown, f"{where}: unknown fields {unknown[:3]}")
    return Row(found, silent)


def _rate(value: Any, where: str, may_be_0: bool) -> Fraction:
    written = value if isinstance(value, str) else json.dumps(value)
    if re.fullmatch(r"\d{1,15}(/0*[1-9]\d{0,14}|\.\d{1,15})?", written, re.ASCII):
        found = Fraction(written)
        if (found or may_be_0) and found <= LARGEST and found.denominator <= 1000:
            return found
    raise RefusedError(f"{where}: expected a rate, got {written[:60]}")


def read_document(data: bytes, kind: str) -> Row:
    """Return the content of a file of format version 2."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        _need(len(found) == len(pairs), f"a field is given twice: {[name for name, _ in pairs]}")
        return found

    def refuse(word: str) -> None:
        raise RefusedError(f"{word} is no number")

    try:
        document = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"no JSON: {error}") from error
    _need(isinstance(document, dict), "expected an object")
    version = document.get("format_version")
    known = isinstance(version, str) and re.fullmatch(r"2\.(0|[1-9][0-9]{0,5})", version)
    _need(known, f"format_version: expected 2.x, got {ascii(version)[:60]}")
    content: Row = read_value(kind, document, "", tolerant=version not in ("2.0", "2.1", "2.2"))
    return content


def read_problem(data: bytes) -> Row:
    """Return a problem, complete and consistent; its slices begin with the whole buffers."""
    problem = read_document(data, "problem")
    _machine_is_consistent(problem.machine)
    has_period = problem.objective[:1] == ["period"]
    if sorted(problem.objective[has_period:]) != sorted(QUANTITIES[:-1]):
        raise RefusedError("objective: expected each quantity once, the period in front or not")
    for rows, first in (
        (problem.tensors, 0), (problem.buffers, 0), (problem.slices, len(problem.buffers)),
        (problem.tasks, 0),
    ):  # fmt: skip
        _numbered(rows, first)
    for one in (*problem.tensors, *problem.buffers):
        size = prod(one.shape) * one.item
        _need(size <= LARGEST and one.bytes in (None, size), f"{one.name}: bytes are {size}")
        one.fields["bytes"] = size
        one.silent.discard("bytes")
    _pins_are_consistent(problem)
    has_state = any(tensor.state is not None for tensor in problem.tensors)
    problem.fields["format_version"] = "2.2" if has_state else "2.1" if has_period else "2.0"
    # The text is that of the file: without the slices that are whole buffers.
    problem.fields["sha256"] = hashlib.sha256(canonical_text(problem).encode()).hexdigest()
    wholes = [
        Row({
            "index": b.index, "buffer": b.index, "start": [0] * len(b.shape), "extent": b.shape,
            "bytes": b.bytes,
        })
        for b in problem.buffers
    ]  # fmt: skip
    problem.fields["slices"] = wholes + problem.slices
    problem.fields["writers"] = {buffer: t.index for t in problem.tasks for buffer in t.writes}
    _tables_are_consistent(problem)
    _states_agree(problem)
    _tasks_are_consistent(problem)
    problem.fields["routes"] = Routes(problem.machine)
    return problem


def _need(holds: object, otherwise: str) -> None:
    if not holds:
        raise RefusedError(otherwise)


def _numbered(rows: Sequence[Row], first: int = 0) -> None:
    for position, one in enumerate(rows, first):
        _need(one.index == position, f"index {one.index} stands at position {position}")


def _machine_is_consistent(machine: Row) -> None:
    for rows in (machine.memories, machine.kinds, machine.cores, machine.links, machine.engines):
        _numbered(rows)
    for rows in (machine.memories, machine.kinds, machine.cores, machine.engines):
        _need(len({one.name for one in rows}) == len(rows), "a name in the machine occurs twice")
    for memory in machine.memories:
        _need(memory.size is not None or memory.kind == "dram", f"{memory.name}: has no size")
        _need(memory.alignment.bit_count() == 1, f"{memory.name}: alignment is no power of 2")
        end = 0
        for taken in memory.reserved:
            _need(end <= taken.start < taken.end, f"{memory.name}: reserved ranges")
            end = taken.end
        _need(memory.size is None or end <= memory.size, f"{memory.name}: reserved beyond its size")
    for kind in machine.kinds:
        if kind.operators is not None:
            kind.fields["operators"] = sorted(set(kind.operators))
    for link in machine.links:
        _need(link.source != link.target, f"link {link.index}: leads from a node to itself")
    memories, kinds = range(len(machine.memories)), range(len(machine.kinds))
    _need(machine.cores, "the machine has no core")
    for core in machine.cores:
        _need(core.kind in kinds and core.memory in memories, f"core {core.name}: kind or memory")
    for engine in machine.engines:
        ends = [*(engine.reaches or ()), *([] if engine.owner is None else [engine.owner])]
        _need(all(end in memories for end in ends), f"engine {engine.name}: no such memory")
    if machine.routing == "xy":
        places = {tuple(position) for _, position in machine.positions}
        _need(len(places) == len(machine.positions), "two routers share a position")


def _tables_are_consistent(problem: Row) -> None:
    memories, tensors, buffers = problem.machine.memories, problem.tensors, problem.buffers
    for tensor in tensors:
        is_dram = tensor.memory < len(memories) and memories[tensor.memory].kind == "dram"
        _need(is_dram, f"tensor {tensor.name}: lies in no DRAM")
    for part in problem.slices:
        who = f"slice {part.index}"
        _need(part.buffer < len(buffers), f"{who}: no such buffer")
        parent = buffers[part.buffer]
        _lies_inside(who, part.start, part.extent, parent.shape)
        _need(part.bytes == prod(part.extent) * parent.item, f"{who}: bytes")
    for buffer in buffers:
        who = f"buffer {buffer.index}"
        if buffer.place is not None:
            _need(buffer.place.tensor < len(tensors), f"{who}: no such tensor")
            tensor = tensors[buffer.place.tensor]
            _lies_inside(who, buffer.place.start, buffer.shape, tensor.shape)
            _need(tensor.item == buffer.item, f"{who}: another item than its tensor")
        origins = (buffer.starts_in is not None) + (buffer.index in problem.writers)
        _need(origins == 1, f"{who}: {origins} origins, expected one")
        for memory in (buffer.starts_in, buffer.ends_in):
            if memory is None:
                continue
            _need(memory < len(memories), f"{who}: no such memory")
            if memories[memory].kind == "dram":
                at_home = buffer.place and tensors[buffer.place.tensor].memory == memory
                _need(at_home, f"{who}: starts or ends in a DRAM in which it has no place")


def _states_agree(problem: Row) -> None:
    tensors = problem.tensors
    boxes: list[list[tuple[str, list[int], list[int]]]] = [[] for _ in tensors]
    for buffer in problem.buffers:
        if buffer.place is not None:
            starts, ends = buffer.starts_in is not None, buffer.ends_in is not None
            how = "read" if starts and buffer.kind != "weight" else "left" if ends else "else"
            how = "else" if starts and how == "left" else how
            boxes[buffer.place.tensor].append((how, buffer.place.start, buffer.shape))
    left = [tensor.state for tensor in tensors if tensor.state is not None]
    for tensor in tensors:
        if tensor.state is None:
            continue
        who = f"tensor {tensor.name}"
        _need(tensor.state < len(tensors), f"{who}: no such state")
        other = tensors[tensor.state]
        same = (tensor.memory, tensor.shape, tensor.item) == (other.memory, other.shape, other.item)
        _need(same, f"{who}: is left as something else")
        _need(left.count(tensor.state) == 1, f"{who}: its state is one of several")
        wanted = sorted(("read", *box) for _, *box in boxes[other.index])
        is_left = all(how == "left" for how, *_ in boxes[other.index])
        _need(is_left and wanted == sorted(boxes[tensor.index]), f"{who}: other buffers are left")


def _lies_inside(who: str, start: list[int], extent: list[int], shape: list[int]) -> None:
    inside = len(start) == len(extent) == len(shape) and all(
        first + count <= length for first, count, length in zip(start, extent, shape, strict=True)
    )
    _need(inside, f"{who}: leaves what it is a box of")


def _tasks_are_consistent(problem: Row) -> None:
    kinds, tasks = len(problem.machine.kinds), problem.tasks
    writes = sum(len(task.writes) for task in tasks)
    _need(writes == len(problem.writers), "a buffer has two writers")
    for task in tasks:
        who = f"task {task.index}"
        _need(len(task.cycles) == kinds and any(task.cycles), f"{who}: cycles of kinds")
        _need(len(task.energy) in (0, kinds), f"{who}: energy of kinds")
        _need(all(s < len(problem.slices) for s in task.reads), f"{who}: reads no slice")
        _need(all(b < len(problem.buffers) for b in task.writes), f"{who}: writes no buffer")
        _need(all(t < len(tasks) for t in task.after), f"{who}: is after no task")
        _need(len(set(task.reads)) == len(task.reads), f"{who}: reads a slice twice")
        _need(len(set(task.writes)) == len(task.writes), f"{who}: writes a buffer twice")
        known = all(a in task.reads and b in task.writes for a, b in task.in_place)
        _need(known, f"{who}: a pair in place that it does not read and write")
    waiting, done = {task.index: predecessors(problem, task) for task in tasks}, set[int]()
    while ready := [task for task, before in waiting.items() if before <= done]:
        done.update(ready)
        for task in ready:
            del waiting[task]
    _need(not waiting, "the order of the tasks has a cycle")


def predecessors(problem: Row, task: Row) -> set[int]:
    """Return the tasks that must end before a task starts."""
    writers = {problem.writers.get(problem.slices[part].buffer) for part in task.reads}
    return writers - {None} | set(task.after)


def _pins_are_consistent(problem: Row) -> None:
    pins, machine = problem.pins, problem.machine
    if pins is None:
        return

    def ascends(who: str, numbers: list[int], count: int) -> None:
        _need(numbers == sorted(set(numbers)), f"{who}: expected each once, in ascending order")
        _need(all(number < count for number in numbers), f"{who}: there are {count}")

    ascends("pins: forbidden", pins.forbidden, len(machine.cores))
    ascends("pins: tasks", [pin.task for pin in pins.tasks], len(problem.tasks))
    ascends("pins: buffers", [pin.buffer for pin in pins.buffers], len(problem.buffers))
    for pin in pins.tasks:
        ascends(f"pin of task {pin.task}", pin.cores, len(machine.cores))
        in_order = pin.not_after is None or pin.not_before < pin.not_after
        _need(in_order, f"pin of task {pin.task}: not_before is not before not_after")
    for pin in pins.buffers:
        who = f"pin of buffer {pin.buffer}"
        ascends(who, pin.memories, len(machine.memories))
        _need(pin.memories, f"{who}: names no memory")
        _need(all(machine.memories[m].kind != "dram" for m in pin.memories), f"{who}: a DRAM")
    if not (pins.forbidden or pins.tasks or pins.buffers):
        problem.fields["pins"] = None
        problem.silent.add("pins")


def canonical_text(problem: Row) -> str:
    """Return the text whose SHA-256 a plan names."""

    def written(value: Any, depth: int) -> str:
        outer, inner = "\n" + "  " * (depth - 1), "\n" + "  " * depth
        if isinstance(value, dict) and depth < 3:
            fields = [f"{json.dumps(key)}: {written(v, depth + 1)}" for key, v in value.items()]
            return f"{{{inner}{(',' + inner).join(fields)}{outer}}}"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return f"[{inner}{(',' + inner).join(map(json.dumps, value))}{outer}]"
        return json.dumps(value)

    return written(plain(problem), 1) + "\n"


def plain(value: Any) -> Any:
    """Return a row as JSON data, in canonical form."""
    if isinstance(value, Row):
        return {k: plain(v) for k, v in value.fields.items() if k not in value.silent}
    if isinstance(value, list):
        return [plain(element) for element in value]
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value


def read_plan(data: bytes, problem: Row) -> Row:
    """Return a plan; with :func:`violations` it is checked."""
    plan = read_document(data, "plan")
    _numbered(plan.tensors)
    named = plan.meta.problem_sha256
    _need(named in ("", problem.sha256), f"made for problem {named[:64]}, not {problem.sha256}")
    for run in plan.tasks:
        run.fields["end"] = run.start + run.cycles
    for kept in plan.residencies:
        _need(len(kept.instances) <= 3, f"residency {kept.index}: expected 3 instances at most")
    return plan


# ----------------------------------------------------------------------------------------- Routes

Way: TypeAlias = tuple[int, int, tuple[int, ...]]
"""Latency, number of links, links: the lesser of two ways is preferred."""


def joined(*ways: Way) -> Way:
    return sum(w[0] for w in ways), sum(w[1] for w in ways), sum((w[2] for w in ways), ())


class Routes:
    """Section 2.2: the links from one memory to another."""

    def __init__(self, machine: Row) -> None:
        self._machine = machine
        self._memories = {memory.name for memory in machine.memories}
        self._grid = dict(machine.positions) if machine.routing == "xy" else {}
        self._xs, self._ys = ({place[axis] for place in self._grid.values()} for axis in (0, 1))
        best: dict[tuple[str, str], Row] = {}
        for link in sorted(machine.links, key=lambda link: (link.latency, link.index)):
            best.setdefault((link.source, link.target), link)
        self._steps = {
            (*self._grid[a], *self._grid[b]): link
            for (a, b), link in best.items()
            if a in self._grid and b in self._grid
        }
        self._all: dict[str, list[Row]] = {}
        self._off_grid: dict[str, list[Row]] = {}
        for (a, b), link in best.items():
            self._all.setdefault(a, []).append(link)
            if a not in self._grid or b not in self._grid:
                self._off_grid.setdefault(a, []).append(link)
        self._trees: dict[tuple[str, bool], dict[str, Way]] = {}
        self._found: dict[tuple[int, int], Way | None] = {}

    def between(self, source: int, target: int) -> Way | None:
        """Return the route from one memory to another, if links lead there."""
        pair = source, target
        if pair not in self._found:
            names = [self._machine.memories[memory].name for memory in pair]
            found = (0, 0, ()) if source == target else self._way(*names)
            if found and self._machine.routing == "round_trip" and len(found[2]) > 1:
                first, last = (self._machine.links[found[2][place]] for place in (0, -1))
                around = self._tree(last.source, off_grid=False).get(first.target, (0,))
                found = found[0] + around[0], *found[1:]
            self._found[pair] = found
        return self._found[pair]

    def to_all(self, source: int, targets: Iterable[int]) -> Way | None:
        """Return the union of the routes to several memories, with the greatest latency."""
        ways = [self.between(source, target) for target in targets]
        found = [way for way in ways if way is not None]
        if len(found) < len(ways):
            return None
        links = tuple(dict.fromkeys(link for way in found for link in way[2]))
        return max((way[0] for way in found), default=0), len(links), links

    def _way(self, source: str, target: str) -> Way | None:
        candidates = []
        if self._grid:
            onto = self._tree(source, off_grid=True)
            if target in onto:
                candidates.append(onto[target])
            for first in onto.keys() & self._grid.keys():
                for last in self._grid:
                    off = self._tree(last, off_grid=True).get(target)
                    across = self._across(self._grid[first], self._grid[last]) if off else None
                    if off and across:
                        candidates.append(joined(onto[first], across, off))
        if candidates:
            return min(candidates)
        return self._tree(source, off_grid=False).get(target)

    def _tree(self, source: str, off_grid: bool) -> dict[str, Way]:
        """Return the shortest way from a node to each; none passes a memory, or enters the grid."""
        key = source, off_grid
        if key in self._trees:
            return self._trees[key]
        links = self._off_grid if off_grid else self._all
        ends = self._memories | (self._grid.keys() if off_grid else set())
        found: dict[str, Way] = {}
        waiting: list[tuple[Way, str]] = [((0, 0, ()), source)]
        while waiting:
            way, node = heappop(waiting)
            if node in found:
                continue
            found[node] = way
            if node == source or node not in ends:
                for link in links.get(node, ()):
                    heappush(waiting, (joined(way, (link.latency, 1, (link.index,))), link.target))
        self._trees[key] = found
        return found

    def _across(self, here: list[int], goal: list[int]) -> Way | None:
        along_x = self._along(here, 0, goal[0])
        along_y = self._along([goal[0], here[1]], 1, goal[1])
        return joined(along_x, along_y) if along_x and along_y else None

    def _along(self, here: list[int], axis: int, goal: int) -> Way | None:
        """Walk along one axis in the direction of fewer steps, or else in the other one."""
        coordinates = (self._xs, self._ys)[axis]
        least, count = min(coordinates), max(coordinates) - min(coordinates) + 1
        up, down = (goal - here[axis]) % count, (here[axis] - goal) % count
        for steps, direction in [(up, 1), (down, -1)] if up <= down else [(down, -1), (up, 1)]:
            place, links = list(here), []
            for _ in range(steps):
                there = list(place)
                there[axis] = least + (place[axis] + direction - least) % count
                links.append(self._steps.get((*place, *there)))
                place = there
            walked = [link for link in links if link is not None]
            if len(walked) == steps:
                indices = tuple(link.index for link in walked)
                return sum(link.latency for link in walked), steps, indices
        return None


# ---------------------------------------------------------------------------------------- Meaning

Layout: TypeAlias = tuple[int, list[int]]
"""The address of a box's first element, and the bytes from one to the next along each axis."""


def row_major(shape: Sequence[int], item: int) -> list[int]:
    return [item * prod(shape[axis + 1 :]) for axis in range(len(shape))]


def copy_loops(
    extent: Sequence[int], item: int, source: Sequence[int], target: Sequence[int]
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the loops of a copy (turns and both strides, the innermost first) and its run."""
    run, loops = item, list[tuple[int, int, int]]()
    for count, s, d in reversed(list(zip(extent, source, target, strict=True))):
        if count == 1:
            continue
        if not loops and s == d == run:
            run *= count
        elif loops and (s, d) == (loops[-1][0] * loops[-1][1], loops[-1][0] * loops[-1][2]):
            loops[-1] = (loops[-1][0] * count, *loops[-1][1:])
        else:
            loops.append((count, s, d))
    return loops, run


def aie_descriptors(loops: Sequence[tuple[int, int, int]], run: int) -> int:
    """Return how many descriptors of an ``aie_bd`` a copy needs."""
    turns = [count for count, _, _ in loops]
    for kept in (2, 1):
        strides = [stride for _, *both in loops[:kept] for stride in both]
        if len(loops) < kept or run > 1020 or not all(4 <= s <= 32768 for s in strides):
            continue
        inside = run * prod(turns[: kept - 1])
        most = min(16383 if kept == 2 else 255, 65532 // inside)
        if most > 0 and all(count <= 255 for count in turns[: kept - 1]):
            return -(-turns[kept - 1] // most) * prod(turns[kept:])
    return prod(turns) * -(-run // 65532)


@dataclass(frozen=True)
class Use:
    """A residency serves a read or a transfer of a slice during ``[start, end)``."""

    by: str
    residency: int
    slice: int
    start: int
    end: int
    rule: str


def _left_buffers(problem: Row) -> dict[int, int]:
    """Return for each buffer of a state the one that is written for it."""
    found = {}
    for read in problem.buffers:
        for written in problem.buffers if read.place is not None else ():
            if written.place is None or written.place.start != read.place.start:
                continue
            if written.place.tensor == problem.tensors[read.place.tensor].state:
                found[read.index] = written.index
    return found


class Case:
    """A problem, a plan, and what several rules ask of them."""

    def __init__(self, problem: Row, plan: Row) -> None:
        self.problem, self.plan, self.machine = problem, plan, problem.machine
        self.routes: Routes = problem.routes
        self.stream: Row | None = plan.stream
        self.begins = plan.stream.begins if plan.stream else 0
        self.rounds = lcm(*(1 + len(kept.instances) for kept in plan.residencies))
        self.place = cache(self._place)
        self.left = _left_buffers(problem) if plan.stream else {}

    def turns(self, start: int, end: int, rounds: int = 1) -> list[tuple[int | None, int, int]]:
        """Return in which inferences something is there or busy, and when; ``None`` if just once.

        In a stream these are the inferences that meet in so many periods behind the prologue, after
        which all comes again. More than twice as long is no matter.
        """
        if self.stream is None:
            return [(0, start, end)]
        begins, period = self.begins, self.stream.period
        if start < begins:
            return [(None, start, min(end, begins))]
        until, end = begins + rounds * period, min(end, start + 2 * rounds * period)
        inferences = range((begins - end) // period + 1, -((start - until) // period))
        return [(k, max(begins, start + k * period), end + k * period) for k in inferences]

    def is_begun(self, kept: Row) -> bool:
        """Return whether a residency is of a state, of the first inference before it begins."""
        if kept.slice is None or self.problem.slices[kept.slice].buffer not in self.left:
            return False
        at_home = self.place(kept.slice, kept.memory) is not None
        return bool(kept.start == 0 if at_home else kept.start < self.begins)

    def left_before(self, kept: Row) -> Row | None:
        """Return the residency that such a one is of the inference before."""
        buffer = self.problem.slices[kept.slice].buffer
        at_home = self.place(kept.slice, kept.memory) is not None
        mine = [kept.offset, *kept.instances]
        for number in range(len(self.plan.residencies)):
            other: Row = self.plan.residencies[number]
            same = other.slice == self.left[buffer] and other.memory == kept.memory
            if same and other.start >= self.begins:
                its = [other.offset, *other.instances]
                if at_home or (kept.slice == buffer and mine == its[-1:] + its[:-1]):
                    return other
        return None

    def _place(self, part: int, memory: int) -> tuple[int, list[int]] | None:
        """Return the tensor of a memory in which a slice has its place, and its first element."""
        box = self.problem.slices[part]
        place = self.problem.buffers[box.buffer].place
        if place is None or self.problem.tensors[place.tensor].memory != memory:
            return None
        return place.tensor, [a + b for a, b in zip(place.start, box.start, strict=True)]

    def layout(self, part: int, kept: Row) -> Layout | None:
        """Return where a slice lies in a residency, if that holds it."""
        box = self.problem.slices[part]
        buffer = self.problem.buffers[box.buffer]
        if not self.holds(kept, part):
            return None
        if buffer.place is not None and buffer.place.tensor >= len(self.plan.tensors):
            return None
        place = self.place(part, kept.memory)
        if place is not None:
            tensor = self.problem.tensors[place[0]]
            base, start, shape = self.plan.tensors[place[0]].address, place[1], tensor.shape
        elif kept.slice == part:
            base, start, shape = kept.offset, [0] * len(box.extent), box.extent
        else:
            base, start, shape = kept.offset, box.start, buffer.shape
        strides = row_major(shape, buffer.item)
        return base + sum(a * b for a, b in zip(start, strides, strict=True)), strides

    def holds(self, kept: Row, part: int) -> bool:
        """Return whether a residency is of a slice or of its whole parent."""
        return kept.slice in (part, self.problem.slices[part].buffer)

    def valid_from(self, kept: Row) -> int:
        if kept.filled_by_task is not None:
            return int(self.plan.tasks[kept.filled_by_task].end)
        if kept.filled_by_transfer is not None:
            return int(self.plan.transfers[kept.filled_by_transfer].end)
        return int(kept.start)

    def uses(self) -> Iterator[Use]:
        for task, run in zip(self.problem.tasks, self.plan.tasks, strict=True):
            who = f"task {task.index}"
            for part, kept in zip(task.reads, run.reads, strict=True):
                yield Use(who, kept, part, run.start, run.end, "operands_served")
        for move in self.plan.transfers:
            who = f"transfer {move.index}"
            yield Use(who, move.source, move.slice, move.start, move.sent, "transfer_data")

    def addresses(self) -> list[list[int]]:
        """Return the address of each tensor, in a stream those of all its instances."""
        first = [[row.address] for row in self.plan.tensors]
        more = self.stream.instances if self.stream is not None else []
        return [a + b for a, b in zip(first, more or [[] for _ in first], strict=True)]

    def makespan(self) -> int:
        return max((one.end for one in (*self.plan.tasks, *self.plan.transfers)), default=0)

    def rate(self, move: Row, links: Iterable[int]) -> Fraction:
        parts = (self.machine.engines[move.engine], *(self.machine.links[link] for link in links))
        return min(Fraction(part.rate) for part in parts)

    def memory(self, kept: int) -> int:
        """Return the memory of a residency."""
        return int(self.plan.residencies[kept].memory)


# ------------------------------------------------------------------------------------------ Rules

Finding: TypeAlias = tuple[str, str]
"""A rule, and how it is broken."""


def violations(problem: Row, plan: Row) -> list[Finding]:
    """Return everything that breaks a rule; nothing for a valid plan."""
    case = Case(problem, plan)
    found = list(structure(case))
    if found:
        return found
    # In a stream many inferences may break a rule in the same way.
    return list(dict.fromkeys(finding for rule in RULES for finding in rule(case)))


def meeting(spans: Iterable[tuple[Any, int, int, Row]]) -> Iterator[tuple[Row, Row]]:
    """Yield pairs of rows that have one key and overlap in time: each with key, start and end."""
    groups: dict[Any, list[tuple[int, int, Row]]] = {}
    for key, begin, until, one in sorted(spans, key=lambda span: span[1]):
        groups.setdefault(key, []).append((begin, until, one))
    for group in groups.values():
        for number, (_, end, a) in enumerate(group):
            for start, _, b in group[number + 1 :]:
                if start >= end:
                    break
                yield a, b


def structure(case: Case) -> Iterator[Finding]:
    """Rule 0."""
    problem, plan, machine = case.problem, case.plan, case.machine

    def exists(who: str, what: str, indices: Iterable[int | None], count: int) -> Iterator[Finding]:
        for index in indices:
            if index is not None and not 0 <= index < count:
                yield "structure", f"{who}: {what} {index} does not exist; there are {count}"

    for what in ("tasks", "tensors"):
        stated, needed = len(plan.fields[what]), len(problem.fields[what])
        if stated != needed:
            yield "structure", f"{stated} rows of {what}, not {needed}"
    for what in ("tasks", "residencies", "transfers"):
        for position, one in enumerate(plan.fields[what]):
            if one.index != position:
                yield "structure", f"{what}: {one.index} stands at position {position}"
    many = [] if case.stream is None else case.stream.instances
    if many and len(many) != len(problem.tensors):
        yield "structure", f"instances of {len(many)} tensors, not {len(problem.tensors)}"
    if case.stream is None and any(one.instances for one in plan.residencies):
        yield "structure", "a residency has instances, but there is no stream"
    kept, moves, slices = len(plan.residencies), len(plan.transfers), len(problem.slices)
    for task, run in zip(problem.tasks, plan.tasks, strict=False):
        who = f"task {task.index}"
        yield from exists(who, "core", [run.core], len(machine.cores))
        yield from exists(who, "residency", [*run.reads, *run.writes, run.scratch], kept)
        if len(run.reads) != len(task.reads) or len(run.writes) != len(task.writes):
            yield "structure", f"{who}: other numbers of reads or writes than the problem has"
    for one in plan.residencies:
        who = f"residency {one.index}"
        yield from exists(who, "slice", [one.slice], slices)
        yield from exists(who, "memory", [one.memory], len(machine.memories))
        yield from exists(who, "task", [one.filled_by_task], len(plan.tasks))
        yield from exists(who, "transfer", [one.filled_by_transfer], moves)
        if not one.start < one.end:
            yield "structure", f"{who}: starts at {one.start}, ends at {one.end}"
        if one.filled_by_task is not None and one.filled_by_transfer is not None:
            yield "structure", f"{who}: is filled by a task and by a transfer"
    for move in plan.transfers:
        who = f"transfer {move.index}"
        yield from exists(who, "slice", [move.slice], slices)
        yield from exists(who, "residency", [move.source, *move.destinations], kept)
        yield from exists(who, "engine", [move.engine], len(machine.engines))
        yield from exists(who, "link", move.route, len(machine.links))
        if not move.destinations:
            yield "structure", f"{who}: has no destination"
        if not move.start < move.sent <= move.end:
            yield "structure", f"{who}: {move.start}, sent at {move.sent}, ends at {move.end}"


def tasks_run(case: Case) -> Iterator[Finding]:
    """Rules 1 to 3."""
    plan, machine = case.plan, case.machine
    for task, run in zip(case.problem.tasks, plan.tasks, strict=True):
        core = machine.cores[run.core]
        expected = task.cycles[core.kind]
        if expected is None:
            yield "able_core", f"task {task.index} cannot run on core {core.name}"
        else:
            for part, kept in zip(task.reads, run.reads, strict=True):
                expected += _remote_cycles(case, part, case.memory(kept), core.memory)
            if run.cycles != expected:
                message = f"task {task.index} takes {run.cycles} cycles, expected {expected}"
                yield "exact_cycles", message
        for earlier in predecessors(case.problem, task):
            if plan.tasks[earlier].end > run.start:
                message = f"task {task.index} starts at {run.start}, before task {earlier} ends"
                yield "precedence", message


def _remote_cycles(case: Case, part: int, memory: int, local: int) -> int:
    """Return what reading an operand in another memory adds to a task's cycles."""
    way = case.routes.between(memory, local)
    if memory == local or case.machine.remote is None or way is None:
        return 0
    exact = case.problem.slices[part].bytes * way[1] * case.machine.remote.cycles_per_byte_hop
    return -int(-exact // 1)


def operands(case: Case) -> Iterator[Finding]:
    """Rule 4, what uses of residencies ask for in rule 7, and lost values in rule 8."""
    for use in case.uses():
        kept = case.plan.residencies[use.residency]
        who = f"{use.by}: slice {use.slice} in residency {kept.index}"
        if not case.holds(kept, use.slice):
            yield use.rule, f"{who}, which holds slice {kept.slice}"
            continue
        if case.valid_from(kept) > use.start:
            yield use.rule, f"{who}, valid from {case.valid_from(kept)} > {use.start}"
        if kept.end < use.end:
            others = (
                other
                for other in case.plan.residencies
                if other is not kept and case.holds(other, use.slice)
                and case.valid_from(other) < use.end <= other.end
            )  # fmt: skip
            rule = "no_value_lost" if next(others, None) is None else use.rule
            yield rule, f"{who}, which ends at {kept.end} < {use.end}"
    remote = case.machine.remote
    for run in case.plan.tasks:
        local = case.machine.cores[run.core].memory
        for kept in run.reads:
            memory = case.memory(kept)
            if memory == local:
                continue
            way = case.routes.between(memory, local)
            is_spm = case.machine.memories[memory].kind == "spm"
            if remote is None or not is_spm or way is None:
                yield "operands_served", f"task {run.index} cannot read from memory {memory}"
            elif remote.longest_route is not None and way[1] > remote.longest_route:
                yield "operands_served", f"task {run.index} reads over {way[1]} links"


def fillers(case: Case) -> Iterator[Finding]:
    """Rule 4, ``filled_as_stated``."""
    plan, rule = case.plan, "filled_as_stated"
    scratch = {run.scratch for run in plan.tasks}
    there_at_the_start = set()
    for run in plan.tasks:
        for kept in run.writes:
            if plan.residencies[kept].filled_by_task != run.index:
                yield rule, f"residency {kept} does not name task {run.index}, which writes it"
    for move in plan.transfers:
        for kept in move.destinations:
            if plan.residencies[kept].filled_by_transfer != move.index:
                yield rule, f"residency {kept} does not name transfer {move.index}, which fills it"
    for kept in plan.residencies:
        who = f"residency {kept.index}"
        if kept.filled_by_task is not None:
            if kept.index not in plan.tasks[kept.filled_by_task].writes:
                yield rule, f"{who} names task {kept.filled_by_task}, which does not write it"
        elif kept.filled_by_transfer is not None:
            move = plan.transfers[kept.filled_by_transfer]
            if kept.index not in move.destinations:
                yield rule, f"{who} names transfer {move.index}, which does not fill it"
            elif kept.start > move.start:
                yield rule, f"{who} starts at {kept.start}, its transfer at {move.start}"
        elif kept.slice is None:
            if kept.index not in scratch:
                yield rule, f"{who} is without a slice and no task's scratch"
        else:
            part = case.problem.slices[kept.slice]
            at_place = case.place(kept.slice, kept.memory) is not None
            is_whole = part.index == part.buffer
            starts_in = case.problem.buffers[part.buffer].starts_in
            if starts_in != kept.memory or kept.start > 0 or not (at_place or is_whole):
                yield rule, f"{who} is filled by nothing, and is not there at cycle 0"
            elif not at_place and part.buffer in there_at_the_start:
                yield rule, f"{who}: buffer {part.buffer} is there at cycle 0 only once"
            there_at_the_start.add(part.buffer)


def results(case: Case) -> Iterator[Finding]:
    """Rule 5."""
    owners: dict[int, int] = {}
    for task, run in zip(case.problem.tasks, case.plan.tasks, strict=True):
        local = case.machine.cores[run.core].memory

        def lasts(kept: Row, run: Row = run, local: int = local) -> bool:
            return bool(kept.memory == local and kept.start <= run.start and kept.end >= run.end)

        for buffer, index in zip(task.writes, run.writes, strict=True):
            kept = case.plan.residencies[index]
            if kept.slice != buffer or not lasts(kept):
                yield (
                    "results_have_room",
                    f"task {task.index}: buffer {buffer} in residency {index}",
                )
        if (run.scratch is None) != (task.scratch == 0):
            yield "scratch_has_room", f"task {task.index} needs {task.scratch} B of scratch"
        if run.scratch is not None:
            kept = case.plan.residencies[run.scratch]
            if kept.slice is not None or kept.bytes < task.scratch or not lasts(kept):
                yield "scratch_has_room", f"task {task.index}: scratch in residency {kept.index}"
            if owners.setdefault(run.scratch, task.index) != task.index:
                yield "scratch_has_room", f"residency {kept.index} is scratch of two tasks"


def memories(case: Case) -> Iterator[Finding]:
    """Rules 6 and 9."""
    problem, plan = case.problem, case.plan
    packed: list[tuple[str, int, int, int]] = []
    tensors = [
        (f"tensor {t.index}", t.memory, address, address + t.bytes)
        for t, addresses in zip(problem.tensors, case.addresses(), strict=True)
        for address in addresses
    ]
    apart = [
        one for one in tensors
        if case.stream is None or problem.tensors[int(one[0].split()[1])].state is None
    ]  # fmt: skip
    for kept in plan.residencies:
        who = f"residency {kept.index}"
        if kept.slice is not None:
            if kept.bytes != problem.slices[kept.slice].bytes:
                yield "exact_size", f"{who} has {kept.bytes} B"
            if case.place(kept.slice, kept.memory) is not None:
                layout = case.layout(kept.slice, kept)
                if layout is not None and kept.offset != layout[0]:
                    yield "at_its_place", f"{who} at {kept.offset}, but its place is {layout[0]}"
                continue
        offsets = (kept.offset, *kept.instances)
        packed += [(who, kept.memory, offset, offset + kept.bytes) for offset in offsets]
    for who, memory, low, high in (*packed, *tensors):
        limits = case.machine.memories[memory]
        if limits.size is not None and high > limits.size:
            yield "inside_memory", f"{who} ends at {high} > {limits.size}"
        if low % limits.alignment:
            yield "inside_memory", f"{who} at {low} is not aligned to {limits.alignment} B"
        if any(low < taken.end and taken.start < high for taken in limits.reserved):
            yield "inside_memory", f"{who} [{low}, {high}) touches reserved bytes"
    for number, (who, index, low, high) in enumerate(apart):
        for other, memory, start, end in (*apart[number + 1 :], *packed):
            if index == memory and low < end and start < high:
                yield "dram_tensors", f"{who} and {other} overlap"
    yield from shared_bytes(case)


def shared_bytes(case: Case) -> Iterator[Finding]:
    """Rule 6: what lies at its place in a tensor is apart from all else."""
    for a, b in meeting(span for kept in case.plan.residencies for span in _copies(case, kept)):
        if _shares_bytes(case, a, b):
            pairs = [(old, new, _replaces(case, old, new)) for old, new in ((a, b), (b, a))]
            found = [(old, new, *task) for old, new, task in pairs if task is not None]
            if not any(_shares_rightly(case, *pair) for pair in found):
                rule = "in_place" if found else "no_shared_bytes"
                yield rule, f"residencies {a.index} and {b.index} share bytes"


def _copies(case: Case, kept: Row) -> Iterator[tuple[Any, int, int, Row]]:
    """Yield a residency, where and when it is there: of all inferences if it is packed."""
    at_place = kept.slice is not None and case.place(kept.slice, kept.memory) is not None
    turns = case.turns(kept.start, kept.end, case.rounds)
    if at_place:
        turns = [(0, kept.start, kept.end)]
    elif case.stream and kept.start < case.begins < kept.end and not case.is_begun(kept):
        turns = [(None, kept.start, case.begins + case.rounds * case.stream.period)]
    for inference, start, end in turns:
        offset = [kept.offset, *kept.instances][(inference or 0) % (1 + len(kept.instances))]
        copy = Row({**kept.fields, "offset": offset, "inference": inference})
        yield (kept.memory, at_place), start, end, copy


def _shares_bytes(case: Case, a: Row, b: Row) -> bool:
    """Return whether two residencies in one memory share bytes without being excused."""
    places = [None if one.slice is None else case.place(one.slice, one.memory) for one in (a, b)]
    if places[0] is None and places[1] is None:
        return bool(a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes)
    if places[0] is None or places[1] is None or places[0][0] != places[1][0]:
        return False  # rule 9
    if all(one.filled_by_task is None and one.filled_by_transfer is None for one in (a, b)):
        return False
    boxes = [
        [(s, s + n) for s, n in zip(place[1], case.problem.slices[one.slice].extent, strict=True)]
        for place, one in zip(places, (a, b), strict=True)
        if place is not None
    ]
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(*boxes, strict=True))


def _replaces(case: Case, old: Row, new: Row) -> tuple[Row, Row] | None:
    """Return the task that may write a residency in place of another one, and its run."""
    if new.filled_by_task is None or old.inference != new.inference:
        return None
    task, run = case.problem.tasks[new.filled_by_task], case.plan.tasks[new.filled_by_task]
    reads = (old.slice, old.index) in zip(task.reads, run.reads, strict=True)
    writes = (new.slice, new.index) in zip(task.writes, run.writes, strict=True)
    is_pair = [old.slice, new.slice] in task.in_place
    return (task, run) if reads and writes and is_pair else None


def _shares_rightly(case: Case, old: Row, new: Row, task: Row, run: Row) -> bool:
    both = max(old.start, new.start), min(old.end, new.end)  # those of the rows
    uses = [use for use in case.uses() if use.residency == old.index]
    return (
        bool(old.offset == new.offset and run.start <= both[0] and both[1] <= run.end)
        and run.reads.count(old.index) == 1
        and all(use.end <= run.start or use.by == f"task {task.index}" for use in uses)
    )


def transfers(case: Case) -> Iterator[Finding]:
    """Rule 7; what a source must be is among the operands."""
    machine, plan = case.machine, case.plan
    for move in plan.transfers:
        who, engine = f"transfer {move.index}", machine.engines[move.engine]
        part = case.problem.slices[move.slice]
        source = plan.residencies[move.source]
        targets = [plan.residencies[index] for index in move.destinations]
        for kept in targets:
            if kept.slice != move.slice or kept.end < move.end:
                yield "transfer_data", f"{who} into residency {kept.index}"
        if len({kept.memory for kept in targets}) < len(targets):
            yield "transfer_data", f"{who} has two destinations in one memory"
        if not all(_serves(engine, source.memory, kept.memory) for kept in targets):
            yield "transfer_route", f"{who}: engine {engine.name} does not serve this move"
        if len(targets) > 1 and not engine.multicast:
            yield "transfer_route", f"{who}: engine {engine.name} cannot multicast"
        way = case.routes.to_all(source.memory, [kept.memory for kept in targets])
        if way is None or list(way[2]) != move.route:
            yield "transfer_route", f"{who} takes {move.route}, the route is {way and way[2]}"
        if way is not None:
            sent = move.start + engine.setup - int(-part.bytes // case.rate(move, way[2]))
            if [move.sent, move.end] != [sent, sent + way[0]]:
                expected = f"expected {sent} and {sent + way[0]}"
                yield "transfer_route", f"{who}: sent {move.sent}, end {move.end}; {expected}"
        yield from _limits(case, move)
        if move.channel >= engine.channels:
            yield "channels", f"{who}: channel {move.channel} of {engine.channels}"


def busy(case: Case) -> Iterator[Finding]:
    """Rules 2 and 7: cores, channels and links."""
    machine, runs, moves = case.machine, list[Any](), list[Any]()
    held: dict[int, list[tuple[int, Fraction]]] = {}
    for run in case.plan.tasks:
        runs += ((run.core, *turn, run) for _, *turn in case.turns(run.start, run.end))
    for move in case.plan.transfers:
        engine, amount = machine.engines[move.engine], case.rate(move, move.route)
        until = move.sent if engine.pipelined else move.end
        channel = move.engine, move.channel
        moves += ((channel, *turn, move) for _, *turn in case.turns(move.start, until))
        begin, sent = move.start + engine.setup, move.sent
        if move.start < case.begins:  # what goes on then is not the prologue's
            sent = min(sent, case.begins)
        for _, start, end in case.turns(begin, sent) if begin < sent else ():
            for link in move.route:
                held.setdefault(link, []).extend(((end, -amount), (start, amount)))
    for a, b in meeting(runs):
        yield "one_task_at_a_time", f"tasks {a.index} and {b.index} on core {a.core}"
    for a, b in meeting(moves):
        yield "channels", f"transfers {a.index} and {b.index} on one channel"
    for link, changes in held.items():
        load = Fraction(0)
        for cycle, change in sorted(changes):
            load += change
            if load > machine.links[link].rate:
                yield "link_rates", f"link {link} carries {load} B/cycle at {cycle}"
                break


def _serves(engine: Row, source: int, target: int) -> bool:
    def reaches(memory: int) -> bool:
        return engine.reaches is None or memory in engine.reaches

    if engine.owner is None:
        return reaches(source) and reaches(target)
    loads = bool(engine.owner == target and engine.loads and reaches(source))
    return loads or bool(engine.owner == source and engine.stores and reaches(target))


def _limits(case: Case, move: Row) -> Iterator[Finding]:
    """``transfer_limits``."""
    engine, part = case.machine.engines[move.engine], case.problem.slices[move.slice]
    rule, who = "transfer_limits", f"transfer {move.index}"
    if engine.longest is not None and part.bytes > engine.longest:
        yield rule, f"{who}: {part.bytes} B > {engine.longest} B"
    source = case.layout(move.slice, case.plan.residencies[move.source])
    for index in move.destinations:
        target = case.layout(move.slice, case.plan.residencies[index])
        if source is None or target is None:
            continue  # transfer_data
        item = case.problem.buffers[part.buffer].item
        loops, run = copy_loops(part.extent, item, source[1], target[1])
        if engine.dimensions is not None and 1 + len(loops) > engine.dimensions:
            yield rule, f"{who}: {1 + len(loops)} dimensions > {engine.dimensions}"
        if (source[0] - target[0]) % engine.congruence:
            yield rule, f"{who}: addresses differ modulo {engine.congruence}"
        if engine.controller == "aie_bd":
            numbers = [source[0], target[0], run, *(s for _, *both in loops for s in both)]
            if any(number % 4 for number in numbers):
                yield rule, f"{who}: addresses, run and strides {numbers} are not all words"
            elif aie_descriptors(loops, run) > 16:
                yield rule, f"{who}: {aie_descriptors(loops, run)} descriptors > 16"


def outputs(case: Case) -> Iterator[Finding]:
    """Rule 8; lost values are among the operands."""
    end = case.makespan()
    for buffer in case.problem.buffers:
        stored = any(
            kept.slice == buffer.index and kept.memory == buffer.ends_in
            and case.valid_from(kept) <= end <= kept.end
            for kept in case.plan.residencies
        )  # fmt: skip
        if buffer.ends_in is not None and not stored and buffer.index not in case.left.values():
            yield "outputs_stored", f"buffer {buffer.index} is not in memory {buffer.ends_in}"


def claims(case: Case) -> Iterator[Finding]:
    """Rule 10."""
    machine, plan, stated = case.machine, case.plan, case.plan.solve
    period = case.stream and case.stream.period
    latency = case.makespan() - case.begins
    found: dict[str, Any] = dict.fromkeys(QUANTITIES, 0)
    found |= {"makespan": latency, "period": period}
    for task, run in zip(case.problem.tasks, plan.tasks, strict=True):
        if task.energy:
            found["energy"] += task.energy[machine.cores[run.core].kind] or 0
    for move in plan.transfers:
        if move.start < case.begins:
            continue
        size = case.problem.slices[move.slice].bytes
        ends = [machine.memories[case.memory(k)] for k in (move.source, *move.destinations)]
        parts = (*ends, *(machine.links[link] for link in move.route))
        found["energy"] += size * sum(part.energy_per_byte or 0 for part in parts)
        found["dram_traffic"] += size * sum(memory.kind == "dram" for memory in ends)
    for kept in plan.residencies:
        if machine.memories[kept.memory].kind == "spm":
            top = max(kept.offset, *kept.instances, 0) + kept.bytes
            found["peak_spm"] = max(found["peak_spm"], top)
    for name, value in found.items():
        if stated.fields[name] != value:
            yield "claims", f"{name} is stated as {stated.fields[name]}, but is {value}"
    first = case.problem.objective[0]
    value = latency if found[first] is None else found[first]
    if stated.bound > value:
        yield "claims", f"bound {stated.bound} > {value}, the {first}"


def pins(case: Case) -> Iterator[Finding]:
    """Rule 11."""
    pinned, kinds = case.problem.pins, [memory.kind for memory in case.machine.memories]
    if pinned is None:
        return
    for run in case.plan.tasks:
        if run.core in pinned.forbidden:
            yield "pinned_core", f"task {run.index} on core {run.core}, which is forbidden"
    for pin in pinned.tasks:
        run = case.plan.tasks[pin.task]
        if pin.cores and run.core not in pin.cores:
            yield "pinned_core", f"task {run.index} on core {run.core}, not one of {pin.cores}"
        start, end = run.start - case.begins, run.end - case.begins
        if start < pin.not_before or (pin.not_after is not None and end > pin.not_after):
            yield "pinned_time", f"task {run.index} runs [{run.start}, {run.end})"
    for pin in pinned.buffers:
        of_it = [
            kept for kept in case.plan.residencies
            if kept.slice is not None and case.problem.slices[kept.slice].buffer == pin.buffer
        ]  # fmt: skip
        for kept in of_it:
            who = f"residency {kept.index} of buffer {pin.buffer}"
            if kept.memory in pin.memories:
                lies = {kept.offset, *kept.instances} == {pin.address}
                there = kept.slice == pin.buffer and lies
                if pin.address is not None and not there:
                    yield "pinned_address", f"{who} at {kept.offset}, not whole at {pin.address}"
            elif kinds[kept.memory] in {kinds[memory] for memory in pin.memories}:
                yield "pinned_memory", f"{who} in memory {kept.memory}, not in {pin.memories}"
        readers = {
            task.index for task in case.problem.tasks
            if any(case.problem.slices[part].buffer == pin.buffer for part in task.reads)
        }  # fmt: skip
        last = max((case.plan.tasks[task].end for task in readers), default=0)
        for memory in pin.memories if pin.resident else ():
            here = [kept for kept in of_it if kept.memory == memory]
            if len(here) != 1 or here[0].slice != pin.buffer or here[0].end < last:
                yield "pinned_resident", f"buffer {pin.buffer} in memory {memory}, until {last}"


def streams(case: Case) -> Iterator[Finding]:
    """Rule 12, but for what the other rules ask of all inferences."""
    plan, begins, buffers = case.plan, case.begins, case.problem.buffers
    if case.stream is None:
        return
    period, latency = case.stream.period, case.makespan() - begins
    is_constant = [b.kind == "weight" and b.starts_in is not None for b in buffers]

    def constant(part: int | None) -> bool:
        return part is not None and is_constant[case.problem.slices[part].buffer]

    for run in plan.tasks:
        if run.start < begins:
            yield "prologue", f"task {run.index} starts at {run.start} < {begins}"
    for move in plan.transfers:
        is_for_ever = constant(move.slice) or case.problem.slices[move.slice].buffer in case.left
        if move.start < begins and (move.end > begins or not is_for_ever):
            yield "prologue", f"transfer {move.index} of the prologue"
    first, last = dict[int, int](), dict[int, int]()
    states = [tensor.state for tensor in case.problem.tensors]
    for kept in plan.residencies:
        who, filled = f"residency {kept.index}", (kept.filled_by_task, kept.filled_by_transfer)
        place = None if kept.slice is None else case.place(kept.slice, kept.memory)
        if place is not None:
            if filled != (None, None):
                begin = kept.start - begins
                first[place[0]] = min(first.get(place[0], begin), begin)
            if kept.instances:
                yield "instances", f"{who} lies in a tensor, and has instances"
        elif case.is_begun(kept):
            pass
        elif kept.start < begins:
            is_permanent = constant(kept.slice) and kept.end >= begins + latency
            if kept.end > begins and not is_permanent:
                yield "permanent", f"{who} is there from the prologue until {kept.end}"
            if kept.instances:
                yield "instances", f"{who} is there once, or for ever, and has instances"
        elif filled == (None, None) and kept.slice is not None:
            yield "instances", f"{who} is filled by nothing"
        elif kept.end - kept.start > (1 + len(kept.instances)) * period:
            yield "instances", f"{who} has {1 + len(kept.instances)} instances"
    for use in case.uses():
        kept = plan.residencies[use.residency]
        place = None if kept.slice is None else case.place(kept.slice, kept.memory)
        if place is not None:
            last[place[0]] = max(last.get(place[0], 0), use.end - begins)
    of_constants = {b.place.tensor for b in buffers if is_constant[b.index] and b.place}
    for tensor, addresses in enumerate(case.addresses()):
        many, state = len(addresses), case.problem.tensors[tensor].state
        if state is not None:
            left = case.addresses()[state]
            late = last.get(tensor, 0) - (len(left) - 1) * period
            is_wrong = addresses != left[-1:] + left[:-1] or late > first.get(state, late)
        elif tensor in states:
            is_wrong = last.get(tensor, 0) > first.get(tensor, 0) + many * period
        elif tensor in of_constants:
            is_wrong = many > 1
        elif tensor in first:
            is_wrong = latency + period - first[tensor] > many * period
        else:
            is_wrong = last.get(tensor, 0) > (many - 1) * period
        if is_wrong:
            yield "handed_over", f"tensor {tensor} has {many} instances"
    yield from left_in_time(case)


def left_in_time(case: Case) -> Iterator[Finding]:
    """Rule 12, ``state``."""
    period, read = case.stream.period if case.stream else 0, dict[int, int]()
    for use in case.uses():
        if use.start >= case.begins:
            read[use.residency] = min(use.start, read.get(use.residency, use.start))
    for kept in filter(case.is_begun, case.plan.residencies):
        who, at_home = f"residency {kept.index}", case.place(kept.slice, kept.memory) is not None
        if kept.index not in read and (at_home or kept.end <= case.begins):
            continue
        other = case.left_before(kept)
        if other is None:
            yield "state", f"{who}: no inference leaves anything there"
        elif kept.index in read and case.valid_from(other) > read[kept.index] + period:
            yield "state", f"{who}: is read at {read[kept.index]}, before {other.index} is there"
        elif not at_home and (other.start - period > case.begins or kept.end > other.end - period):
            yield "state", f"{who}: until {kept.end}, but {other.index} is another time"


RULES = (
    tasks_run, operands, fillers, results, memories, transfers, busy, outputs, claims, pins,
    streams,
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Check the plan of one file against the problem of another one."""
    if len(arguments) != 2:
        print("usage: python checker.py problem.json plan.json", file=sys.stderr)
        return 2
    try:
        problem = read_problem(Path(arguments[0]).read_bytes())
        found = violations(problem, read_plan(Path(arguments[1]).read_bytes(), problem))
    except (OSError, RefusedError) as error:
        print(error, file=sys.stderr)
        return 2
    for rule, message in found:
        print(f"{rule}: {message}")
    print(f"{len(found)} violations" if found else "valid")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
