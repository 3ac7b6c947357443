"""The rows of the large tables of ``plan.json``, as text.

The plan of a network can have a hundred thousand residencies and transfers, and after an interrupt
users wait for the file. So each row is written in one go, from pieces of text that are made once
for all rows that share them.
"""

import json
from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from spmilp.plan import derived
from spmilp.plan.ends import Ends, Strides
from spmilp.plan.plan import Plan, Residency, Transfer
from spmilp.problem.documents import row
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, strided_copy
from spmilp.units import Bytes, Extents, LinkIdx, MemoryIdx, SliceIdx

K = TypeVar("K", bound=Hashable)


def residency_lines(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield the rows of a plan's residencies."""
    contents = _Pieces[SliceIdx | None](lambda held: _content(problem, held))
    memories = _Pieces[MemoryIdx](lambda memory: _memory(problem, memory))
    for residency in plan.residencies:
        yield (
            f'{{"index": {residency.index}, {contents[residency.slice]}{memories[residency.memory]}'
            f'"offset": {residency.offset}, "bytes": {residency.bytes}, '
            f'"start": {residency.start}, '
            f'"end": {residency.end}{_filler(residency)}}}'
        )


def transfer_lines(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield the rows of a plan's transfers."""
    names = _Pieces[SliceIdx](lambda moved: _name(problem, moved))
    sizes = _Pieces[SliceIdx](lambda moved: _size(problem, moved))
    engines = _Pieces[int](lambda engine: _engine(problem, engine))
    routes = _Pieces[tuple[LinkIdx, ...]](_numbers)
    ends = _EndsAsText(problem, plan)
    for move in plan.transfers:
        direction, places = ends.of(move)
        yield (
            f'{{"index": {move.index}, {names[move.slice]}{direction}{engines[move.engine]}'
            f'"channel": {move.channel}, "start": {move.start}, "cycles": {move.end - move.start}, '
            f'{sizes[move.slice]}"source": {move.source}, {places}'
            f'"destinations": {_numbers(move.destinations)}, "route": {routes[move.route]}}}'
        )


class _Pieces(dict[K, str]):
    """Text for keys, made when it is first asked for."""

    def __init__(self, make: Callable[[K], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> str:
        """Make the text for a key."""
        made = self[key] = self._make(key)
        return made


class _EndsAsText:
    """Text of the addresses in rows of transfers."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self._problem = problem
        self._ends = Ends(problem, plan)
        self._directions = _Pieces[tuple[MemoryIdx, MemoryIdx]](self._direction)
        self._loops = _Pieces[tuple[Extents, Bytes, Strides, Strides]](_dimensions)

    def of(self, move: Transfer) -> tuple[str, str]:
        """Return the direction of a transfer, and its addresses and strides."""
        ends = self._ends.of(move)
        if not ends:
            return "", ""
        source, *others = ends
        part = self._problem.slices[move.slice]
        shape = part.extent, self._problem.buffers[part.buffer].item, source.strides
        targets = [
            f'{{"memory": {end.memory}, "address": {end.address}, '
            f'"dims": {self._loops[(*shape, end.strides)]}}}'
            for end in others
        ]
        return (
            self._directions[source.memory, others[0].memory],
            f'"src": {{"memory": {source.memory}, "address": {source.address}}}, '
            f'"dst": [{", ".join(targets)}], ',
        )

    def _direction(self, memories: tuple[MemoryIdx, MemoryIdx]) -> str:
        return _fields(dir=derived.direction(self._problem, *memories))


def _content(problem: Problem, held: SliceIdx | None) -> str:
    names = derived.of_content(problem, held)
    return _fields(slice=held, name=names.get("name"), kind=names.get("kind"))


def _memory(problem: Problem, memory: MemoryIdx) -> str:
    return _fields(memory=memory, **derived.of_memory(problem, memory))


def _engine(problem: Problem, engine: int) -> str:
    return _fields(engine=engine, **derived.of_engine(problem, engine))


def _name(problem: Problem, moved: SliceIdx) -> str:
    return _fields(slice=moved, name=derived.of_content(problem, moved).get("name"))


def _size(problem: Problem, moved: SliceIdx) -> str:
    size = derived.of_content(problem, moved).get("bytes")
    return "" if size is None else f'"bytes": {size}, '


def _dimensions(key: tuple[Extents, Bytes, Strides, Strides]) -> str:
    extent, item, source, target = key
    copy = strided_copy(extent, item, Layout(0, source), Layout(0, target))
    loops = [*copy.loops, (copy.run, 1, 1)]
    return json.dumps(
        [{"count": n, "src_stride": from_, "dst_stride": to} for n, from_, to in loops]
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _filler(residency: Residency) -> str:
    text = ""
    if residency.filled_by_task is not None:
        text += f', "filled_by_task": {residency.filled_by_task}'
    if residency.filled_by_transfer is not None:
        text += f', "filled_by_transfer": {residency.filled_by_transfer}'
    return text


def _fields(**values: object) -> str:
    """Return the fields of a row that say something, with a comma after each."""
    text = json.dumps(row(**values))[1:-1]
    return f"{text}, " if text else ""
