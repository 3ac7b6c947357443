"""The arena of TensorFlow Lite Micro (TFLM): a model's tensors packed, and the plan in its file.

TFLM keeps tensors in the head of its arena, and places them when it starts: at the offsets that the
file's metadata say; the others, and what kernels claim for themselves (scratch buffers), by
decreasing size, each in the lowest gap. Sizes and lifetimes are those of its planner
(tensorflow/tflite-micro, ``micro_allocation_info.cc`` and ``memory_helpers.cc``). Structures, and
the variables of a network, lie in the tail as before.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spmilp import quantities
from spmilp.errors import FileError
from spmilp.files import write_atomically
from spmilp.frontend.tflite.file import read_tflite, schema, write_tflite
from spmilp.frontend.tflite.read import Operation, is_dynamic, names_of
from spmilp.frontend.tflite.run import Run
from spmilp.packing import Buffer, Item, Packing, PackingOptions, PackingProblem, minimise
from spmilp.packing.minimalloc import Table
from spmilp.units import Bytes, align_up

METADATA = b"OfflineMemoryAllocation"
"""Its buffer holds int32: version 0, number of subgraphs, number of tensors, and for each tensor of
all subgraphs the offset in the head in bytes, -1 where TFLM decides."""

ALIGNMENT: Bytes = 16
"""Of tensors; sizes are rounded up to it."""

LARGEST = 2**31 - 1
"""Bytes that an offset can say."""

KINDS = {
    **dict.fromkeys(("BOOL", "INT4", "INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "FLOAT16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FLOAT32", "RESOURCE"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FLOAT64", "COMPLEX64"), 8),
    "COMPLEX128": 16,
}
"""Bytes of an element in TFLM, which unpacks what has less than a byte."""

CALLS = {
    "IF": ("thenSubgraphIndex", "elseSubgraphIndex"),
    "WHILE": ("condSubgraphIndex", "bodySubgraphIndex"),
    "CALL_ONCE": ("initSubgraphIndex",),
}
"""Operators that run subgraphs, one after the other, and the options that name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena(Table):
    """What TFLM plans for a model: tensors, then the workspace of operators.

    ``tensors`` has the position of each of the former among the tensors of all subgraphs.
    """

    model: Any
    tensors: tuple[int, ...]

    def content(self, offsets: Sequence[Bytes]) -> bytes:
        """Return the model's file with these offsets; all else is as it was.

        Raises a ``FileError`` if the arena is too large for TFLM.
        """
        model, count = self.model, sum(len(graph.tensors) for graph in self.model.subgraphs)
        height = max((o + one.size for o, one in zip(offsets, self.items, strict=True)), default=0)
        if height > LARGEST:
            raise FileError(
                f"the arena has {height:,} B, TensorFlow Lite Micro takes {LARGEST:,} B"
            )
        plan = np.array([0, len(model.subgraphs), count, *[-1] * count], dtype="<i4")
        plan[3 + np.array(self.tensors, dtype=int)] = offsets[: len(self.tensors)]
        entries = model.metadata or []
        others = [entry for entry in entries if entry.name != METADATA]
        taken = {one.buffer for one in (*others, *(t for g in model.subgraphs for t in g.tensors))}
        # An earlier plan gives its buffer up.
        former = {entry.buffer for entry in entries} & {*range(1, len(model.buffers))} - taken
        at = min(former, default=len(model.buffers))
        if not former:
            model.buffers.append(schema().BufferT())
        model.buffers[at].data = plan.view(np.uint8)
        entry = schema().MetadataT()
        entry.name, entry.buffer = METADATA, at
        model.metadata = [*others, entry]
        return write_tflite(model)


def plan_arena(
    path: Path | str,
    output: Path | str | None = None,
    *,
    capacity: Bytes | None = None,
    workspace: Mapping[str, Bytes] | None = None,
    options: PackingOptions | None = None,
) -> Packing:
    """Find the lowest arena of at most ``capacity`` bytes for a model; write it with the plan.

    >>> plan = plan_arena("model.tflite", "planned.tflite")
    >>> plan.status, plan.height, plan.bound

    The offsets are those of the buffers of :func:`read_arena`, which says what ``workspace`` is.
    Without options the search ends after a minute. ``output`` may be ``path``.

    Raises a ``SpmilpError`` if a file cannot be read or written, or LiteRT is not installed.
    """
    arena = read_arena(Path(path), workspace or {})
    problem = PackingProblem(items=arena.items, capacity=capacity)
    found = minimise(problem, options or PackingOptions(time_limit=60.0))
    if found.offsets is not None and output is not None:
        write_atomically(output, arena.content(found.offsets))
    return found


def read_arena(path: Path, workspace: Mapping[str, Bytes]) -> Arena:
    """Return what TFLM plans for a model.

    ``workspace`` has the bytes that the kernel of an operator claims while it runs, the sum of its
    scratch buffers, each rounded up to 16; the key is the operator's position in the first
    subgraph, or the name of a kind, such as ``TRANSPOSE_CONV``. A buffer keeps them free; TFLM puts
    them there or lower.

    Raises a ``FileError`` if the file cannot be read or TFLM cannot run it, and a
    ``MissingExtraError`` if LiteRT is not installed.
    """
    model, content = read_tflite(path)
    try:
        _lengths_are_those_at_run_time(model, content)
        return _arena_of(model, workspace)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileError(f"{path}: its arena cannot be planned: {error}") from error


def _lengths_are_those_at_run_time(model: Any, content: bytes) -> None:
    """Raise a ``ValueError`` if TFLM, which believes the file, would write behind a tensor."""
    graph = model.subgraphs[0]
    if not is_dynamic(graph):
        return
    recorded = [tuple(map(int, _listed(tensor.shape))) for tensor in graph.tensors]
    found = Run(content).shapes(recorded)
    for name, said, real in zip(names_of(model), recorded, found, strict=True):
        if math.prod(real) > math.prod(said):
            raise ValueError(
                f"{name} has shape {list(said)} in the file, but {list(real)} when it runs; "
                "convert the model with a fixed batch"
            )


def _arena_of(model: Any, workspace: Mapping[str, Bytes]) -> Arena:
    """Raise one of several errors if TFLM cannot run the model."""
    if any(one.offset > 1 for one in model.buffers):
        raise ValueError("there is data behind the flatbuffer")
    timeline = _Timeline(model, {}, [])
    timeline.run(0, 0)
    rows = [
        (g, i, t) for g, graph in enumerate(model.subgraphs) for i, t in enumerate(graph.tensors)
    ]
    first, buffers, tensors = names_of(model), list[Buffer](), list[int]()
    for position, (number, index, tensor) in enumerate(rows):
        name = f"tensor {index} of subgraph {number}"
        if not number and first[index].isprintable():
            name = first[index]
        if tensor.isVariable and number and index in tensors:
            # TFLM then takes the variable for planned, and crashes.
            raise ValueError(f"{name} is a variable, and tensor {index} of subgraph 0 is planned")
        content = model.buffers[tensor.buffer].data
        if tensor.isVariable or (content is not None and len(content)):
            continue
        # What never runs may lie anywhere: TFLM asks for its bytes, and uses none of them.
        spans = timeline.lives.get((number, index), [(-1 - position, -position)])
        size = _bytes_of(tensor, name)
        if size:
            buffers.append(_buffer(name, size, spans))
            tensors.append(position)
    for key, size in workspace.items():
        claiming = [run for run in timeline.runs if key in (run.kind, run.position)]
        if not claiming:
            known = quantities.names(sorted({run.kind for run in timeline.runs}))
            raise ValueError(
                f"no operator is {key!r}, which is to claim {size:,} B; known: {known}"
            )
        for run in claiming:
            name = f"workspace {len(buffers)} of {run.kind}"
            buffers.append(_buffer(name, size, [(run.start, run.end)]))
    return Arena(header=(), rows=(), buffers=tuple(buffers), model=model, tensors=tuple(tensors))


def _buffer(name: str, size: Bytes, spans: Sequence[tuple[int, int]]) -> Buffer:
    size = align_up(size, ALIGNMENT)
    return Buffer(name=name, item=Item(size=size, lifetimes=tuple(spans), alignment=ALIGNMENT))


def _bytes_of(tensor: Any, name: str) -> Bytes:
    names = {value: name for name, value in vars(schema().TensorType).items()}
    kind = names.get(tensor.type, f"number {tensor.type}")
    shape = [] if tensor.shape is None else [int(extent) for extent in tensor.shape]
    size = KINDS.get(kind, 0) * math.prod(shape)
    if kind not in KINDS or min(shape, default=0) < 0 or size > LARGEST:
        raise ValueError(
            f"{name} is of type {kind} and shape {shape}, expected numbers, of lengths that are "
            f"known, of at most {LARGEST:,} B"
        )
    return size


class _Run(NamedTuple):
    """An operator at work in ``[start, end)``; its position, as text, in the first subgraph."""

    kind: str
    position: str
    start: int
    end: int


class _Timeline(NamedTuple):
    """When operators run, and when tensors live, by subgraph and index: once for each call.

    An operator takes one instant, and those of the subgraphs that it runs.
    """

    model: Any
    lives: dict[tuple[int, int], list[tuple[int, int]]]
    runs: list[_Run]

    def run(self, number: int, start: int, callers: tuple[int, ...] = ()) -> int:
        """Let a subgraph run from an instant on; return its last.

        Inputs live from the beginning on, outputs until the end; all others from the first instant
        of the operator that writes them until the last of the last one that reads them.
        """
        if number in callers or not 0 <= number < len(self.model.subgraphs):
            count = len(self.model.subgraphs)
            raise ValueError(f"subgraph {number} is to run inside {callers}; there are {count}")
        graph, now = self.model.subgraphs[number], start
        spans = {int(tensor): [start, start] for tensor in _listed(graph.inputs)}
        for index, operator in enumerate(_listed(graph.operators)):
            one, now = Operation(self.model, operator, index), now + 1
            began = now
            for tensor in one.outputs:
                spans.setdefault(tensor, [now, now])
            for field in CALLS.get(one.kind, ()):
                now = self.run(one.option(field), now + 1, (*callers, number))
            for tensor in (*one.inputs, *one.outputs):
                spans.setdefault(tensor, [start, now])[1] = now
            self.runs.append(_Run(one.kind, "" if number else str(index), began, now + 1))
        for tensor in _listed(graph.outputs):
            spans.setdefault(int(tensor), [start, now])[1] = now
        for tensor, (first, last) in spans.items():
            # An operand that is left out is -1.
            if not -1 <= tensor < len(graph.tensors):
                count = len(graph.tensors)
                raise ValueError(f"subgraph {number} names tensor {tensor}, but there are {count}")
            self.lives.setdefault((number, tensor), []).append((first, last + 1))
        return now


def _listed(vector: Any) -> Sequence[Any]:
    """Return a vector of the schema, which may be missing."""
    return () if vector is None else vector
