"""Runs a plan from its tables alone, as firmware would: memories, copies, commands, steps.

It knows nothing of the problem, the plan or the network. Its operators are the NumPy kernels of the
value replay, which get what they need from the tables too.
"""

import struct
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.export.tables.codes import (
    ATTRIBUTES,
    OPERATORS,
    AttributeType,
    Direction,
    Elements,
    ListKind,
    Operation,
    Part,
)
from spmilp.export.tables.table import NONE, Tables
from spmilp.frontend.graph import Operator, Quantisation, Scale, Tensor

Box = tuple[tuple[int, int], ...]


class Row:
    """A row of a table by the names of its columns."""

    def __init__(self, columns: Any, row: tuple[int, ...]) -> None:
        for column, value in zip(columns, row, strict=True):
            setattr(self, column.name, value)

    def __getattr__(self, name: str) -> int:
        raise AttributeError(name)


class Player:
    """All rows by table, and one array of bytes for each memory."""

    def __init__(self, tables: Tables) -> None:
        self.words, self.texts, self.image = tables.words, tables.texts, tables.image
        self.rows = {
            table.layout.table: [Row(table.layout.columns, row) for row in table.rows]
            for table in tables.tables
        }
        self.memories = [np.full(row.used, 0xAA, np.uint8) for row in self.rows["memories"]]
        self.workspace = np.full(self.rows["summary"][0].workspace, 0xBB, np.uint8)
        for segment in self.rows["segments"]:
            content = self.image[segment.image : segment.image + segment.bytes]
            memory = self.memories[segment.memory]
            memory[segment.address : segment.address + segment.bytes] = list(content)

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Write the inputs, run every list round robin, and return the outputs."""
        for port in self.rows["ports"]:
            if port.direction == Direction.INPUT:
                self._port(port)[...] = inputs[self.text(port.name)]
        events = [0] * self.rows["summary"][0].events
        scheme_takes = self.rows["summary"][0].scheme == 1
        lists = [
            self.rows["commands"][each.first_command : each.first_command + each.commands]
            for each in self.rows["lists"]
        ]
        at = [0] * len(lists)
        while any(here < len(one) for here, one in zip(at, lists, strict=True)):
            before = list(at)
            for number, one in enumerate(lists):
                while at[number] < len(one):
                    command = one[at[number]]
                    if command.operation == Operation.WAIT:
                        if events[command.argument] < command.count:
                            break
                        events[command.argument] -= command.count * scheme_takes
                    elif command.operation == Operation.SIGNAL:
                        events[command.argument] += 1
                    elif command.operation == Operation.RUN:
                        assert self.rows["lists"][number].kind == ListKind.CORE
                        self.compute(self.rows["tasks"][command.argument])
                    else:
                        self.move(self.rows["transfers"][command.argument])
                    at[number] += 1
            assert at != before, "the command lists are stuck"
        return {
            self.text(port.name): self._port(port).copy()
            for port in self.rows["ports"]
            if port.direction == Direction.OUTPUT
        }

    def move(self, transfer: Row) -> None:
        for copy in self.rows["copies"][transfer.first_copy :][: transfer.copies]:
            loops = self.rows["loops"][copy.first_loop :][: copy.loops]
            source, target = (
                self.memories[copy.source_memory],
                self.memories[copy.destination_memory],
            )
            moved = 0
            for turn in np.ndindex(*(loop.count for loop in loops)):
                a = copy.source + sum(
                    i * loop.source_stride for i, loop in zip(turn, loops, strict=True)
                )
                b = copy.destination + sum(
                    i * loop.destination_stride for i, loop in zip(turn, loops, strict=True)
                )
                target[b : b + copy.run] = source[a : a + copy.run]
                moved += copy.run
            assert moved == transfer.bytes

    def compute(self, task: Row) -> None:
        for step in self.rows["steps"][task.first_step :][: task.steps]:
            self.step(step)

    def step(self, step: Row) -> None:
        """Gather the inputs, compute, and scatter the result over the output's pieces."""
        numbers = self.words[step.first_input :][: step.inputs]
        views = [None if number < 0 else self.rows["views"][number] for number in numbers]
        output = self.rows["views"][step.output]
        tensors = {
            f"i{position}": self.tensor(f"i{position}", view)
            for position, view in enumerate(views)
            if view is not None
        }
        tensors["out"] = self.tensor("out", output)
        operator = self.operator(step, views)
        inputs = [None if view is None else self.gather(view) for view in views]
        boxes = [None if view is None else self.box(view.box, view.rank) for view in views]
        own = self.box(output.box, output.rank)
        if step.part == Part.WHOLE:
            result = compute(operator, tensors, inputs, boxes, own)
        else:
            previous = None
            if step.previous != NONE:
                previous = self.gather(self.rows["views"][step.previous])
            result = partial(operator, tensors, inputs, boxes, own, previous)
            if step.part == Part.LAST:
                result = complete(operator, tensors, inputs, boxes, own, result)
        self.scatter(output, result)

    def tensor(self, name: str, view: Row) -> Tensor:
        if view.value == NONE:
            return Tensor(name=name, shape=(), dtype=_dtype(view.type))
        value = self.rows["values"][view.value]
        assert value.type == view.type
        shape = tuple(self.words[value.shape :][: value.rank])
        return Tensor(name=name, shape=shape, dtype=_dtype(value.type))

    def operator(self, step: Row, views: list[Row | None]) -> Operator:
        scales = [
            None if number < 0 else self.scale(self.rows["scales"][number])
            for number in self.words[step.scales :][: step.inputs + 1]
        ]
        output = scales[-1]
        if output is not None:
            output = replace(output, rounds_with_zero=step.quantised == 2)
        quantisation = Quantisation(
            inputs=tuple(scales[:-1]),
            output=output,
            low=_real(step.low) if step.limits & 1 else None,
            high=_real(step.high) if step.limits & 2 else None,
        )
        return Operator(
            name="step",
            kind=OPERATORS[step.kind],
            inputs=tuple("" if v is None else f"i{p}" for p, v in enumerate(views)),
            output="out",
            attributes=dict(
                self.attribute(row)
                for row in self.rows["attributes"][step.first_attribute :][: step.attributes]
            ),
            quantisation=quantisation if step.quantised else None,
        )

    def attribute(self, row: Row) -> tuple[str, Any]:
        words = self.words[row.first :][: row.count]
        value: Any = {
            AttributeType.INTEGER: lambda: words[0],
            AttributeType.REAL: lambda: _real(words[0]),
            AttributeType.TEXT: lambda: self.text(row.first),
            AttributeType.INTEGERS: lambda: tuple(words),
            AttributeType.REALS: lambda: tuple(map(_real, words)),
        }[AttributeType(row.type)]()
        return ATTRIBUTES[row.name], value

    def scale(self, row: Row) -> Scale:
        steps = [_real(word) for word in self.words[row.scales :][: row.count]]
        zeros = self.words[row.zero_points :][: row.zeros]
        one = row.axis < 0
        return Scale(
            scale=np.array(steps, np.float32).reshape(() if one else (-1,)),
            zero_point=np.array(zeros, np.int32).reshape(() if row.zeros == 1 else (-1,)),
            axis=None if one else row.axis,
            dtype=_dtype(row.type),
        )

    def gather(self, view: Row) -> np.ndarray:
        box, dtype = self.box(view.box, view.rank), _dtype(view.type)
        if view.direct:
            piece = self.rows["pieces"][view.first_piece]
            memory = self._memory(piece.memory)
            here = memory[view.offset : view.offset + view.bytes]
            return here.view(dtype).reshape([b - a for a, b in box]).copy()
        found = np.zeros([b - a for a, b in box], dtype)
        covered = np.zeros(found.shape, bool)
        for place, lies in self._parts(view, box, dtype):
            found[place] = lies
            covered[place] = True
        assert covered.all()
        return found

    def scatter(self, view: Row, values: np.ndarray) -> None:
        dtype = _dtype(view.type)
        assert values.dtype == dtype
        box = self.box(view.box, view.rank)
        for place, lies in self._parts(view, box, dtype):
            lies[...] = values[place]

    def _parts(self, view: Row, box: Box, dtype: Any) -> Any:
        """Yield for each piece what of the box it has, and these elements as they lie."""
        for piece in self.rows["pieces"][view.first_piece :][: view.pieces]:
            own = self.box(piece.box, view.rank)
            strides = self.words[piece.strides :][: view.rank]
            shared = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, own, strict=True)]
            offset = piece.offset + sum(
                (a - c) * stride
                for (a, _), (c, _), stride in zip(shared, own, strides, strict=True)
            )
            extent = tuple(b - a for a, b in shared)
            memory = self._memory(piece.memory)
            lies = np.ndarray(extent, dtype, memory.data, offset, strides)
            yield (
                tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, box, strict=True)),
                lies,
            )

    def _port(self, port: Row) -> np.ndarray:
        shape = self.words[port.shape :][: port.rank]
        strides = self.words[port.strides :][: port.rank]
        dtype = _dtype(port.type)
        assert prod(shape) * dtype.itemsize == port.bytes
        return np.ndarray(shape, dtype, self.memories[port.memory].data, port.address, strides)

    def _memory(self, number: int) -> np.ndarray:
        return self.workspace if number == NONE else self.memories[number]

    def box(self, first: int, rank: int) -> Box:
        words = self.words[first : first + 2 * rank]
        return tuple((a, a + n) for a, n in zip(words[::2], words[1::2], strict=True))

    def text(self, first: int) -> str:
        return self.texts[first : self.texts.index(b"\0", first)].decode()


def _dtype(code: int) -> np.dtype:
    return np.dtype(Elements(code).name.lower())


def _real(word: int) -> float:
    return struct.unpack("<f", struct.pack("<i", word))[0]
