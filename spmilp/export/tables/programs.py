"""The steps of each task, on the bytes at its operands' addresses.

The steps are those of the value replay (:mod:`spmilp.checker.values.tasks`): the same operators on
the same boxes. That the tables give the same numbers is tested by running them.
"""

from dataclasses import dataclass, replace

import numpy as np

from spmilp.checker.values.addresses import Addresses
from spmilp.checker.values.kernels.products import accumulator_dtype
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.export.tables.codes import Part
from spmilp.export.tables.operators import (
    ScaleTable,
    attribute_rows,
    limits,
    operator_code,
    quantised,
    type_code,
)
from spmilp.export.tables.table import NONE, Texts, Words
from spmilp.export.tables.views import Piece, ViewTable, Workspace, piece_of
from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import extents
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import box_of_anchor, group_regions, until_anchor
from spmilp.plan.plan import Placement
from spmilp.problem.problem import Task, Tile
from spmilp.problem.strides import row_major_strides
from spmilp.units import Box, ResidencyIdx


class ValueTable:
    """The table of the network's tensors that steps compute with."""

    def __init__(self, network: Network, words: Words, texts: Texts) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.names: list[str] = []
        self._network = network
        self._words, self._texts = words, texts
        self._known: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return the number of a tensor, which is added when it is new."""
        if name not in self._known:
            self._known[name] = len(self.rows)
            self.names.append(name)
            tensor = self._network.tensors[name]
            self.rows.append(
                (
                    *(type_code(tensor.dtype), len(tensor.shape)),
                    *(self._words.add(tensor.shape), self._texts.add(name)),
                )
            )
        return self._known[name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scope:
    """One task while its steps are made.

    Parameters
    ----------
    group
        Its operators; of a part that is not the last one, only those up to the anchor.
    part
        Of the anchor's reduction; ``None`` for all of it.
    length
        Of the anchor's reduction.
    given, sums, results
        Pieces of tensors that it reads, of partial sums, and of what it writes. Partial sums are in
        the axes of the anchor's output.
    computed
        What the steps so far have left in the workspace, by tensor.
    in_place
        Whether some bytes that it writes are bytes that it reads.
    """

    group: Group
    part: tuple[int, int] | None
    length: int
    regions: dict[str, Box]
    given: list[Piece]
    sums: list[Piece]
    results: list[Piece]
    computed: dict[str, Piece]
    workspace: Workspace
    in_place: bool

    @property
    def leaves_sums(self) -> bool:
        """Whether it writes partial sums."""
        return self.part is not None and self.part[1] < self.length


class Programs:
    """Makes the tables of values, views, pieces, scales, steps and attributes."""

    def __init__(self, subject: Subject, network: Network, words: Words, texts: Texts) -> None:
        self.values = ValueTable(network, words, texts)
        self.views = ViewTable(words)
        self.scales = ScaleTable(words)
        self.steps: list[tuple[int, ...]] = []
        self.step_names: list[str] = []
        self.attributes: list[tuple[int, ...]] = []
        self.workspace = 0
        self._subject, self._network = subject, network
        self._words, self._texts = words, texts
        self._addresses = Addresses(subject.problem, subject.plan, network)
        self._attributes_of: dict[str, tuple[int, int]] = {}

    def add(self, task: Task, placement: Placement) -> tuple[int, int]:
        """Add the steps of a task and return the first and how many there are.

        Raises
        ------
        ReplayError
            If the task is no tile of the network.
        ExportError
            If the format cannot express an operator.
        """
        first = len(self.steps)
        scope = self._scope(task, placement)
        for position, operator in enumerate(scope.group.operators):
            if operator.output in scope.regions:
                self._add_step(scope, operator, is_anchor=position == scope.group.anchor)
        self.workspace = max(self.workspace, scope.workspace.size)
        return first, len(self.steps) - first

    def _scope(self, task: Task, placement: Placement) -> _Scope:
        tile = _tile(task)
        group = self._addresses.group(tile.of)
        anchor = group.operators[group.anchor]
        length = family_of(anchor.kind).reduction(anchor, self._network.tensors)
        part = None if tile.reduction == (0, length) else tile.reduction
        pieces = [self._piece(*read) for read in zip(task.reads, placement.reads, strict=True)]
        results = [self._piece(*write) for write in zip(task.writes, placement.writes, strict=True)]
        sums = [self._at_anchor(group, piece) for piece in pieces if piece.partial]
        computed, box = group, tile.box
        if part is not None and part[1] < length:
            computed, box = until_anchor(group), box_of_anchor(self._network, group, box)
            results = [self._at_anchor(group, piece) for piece in results]
        return _Scope(
            group=computed,
            part=part,
            length=length,
            regions=group_regions(self._network, computed, box, part),
            given=[piece for piece in pieces if not piece.partial],
            sums=sums,
            results=results,
            computed={},
            workspace=Workspace(),
            in_place=self._shares_bytes(placement),
        )

    def _add_step(self, scope: _Scope, operator: Operator, *, is_anchor: bool) -> None:
        own = scope.regions[operator.output]
        part = scope.part if is_anchor else None
        boxes = family_of(operator.kind).reads(operator, self._network.tensors, own, part)
        inputs = [
            -1 if box is None else self._input(scope, name, box)
            for name, box in zip(operator.inputs, boxes, strict=True)
        ]
        previous = NONE
        if part is not None and part[0] > 0:
            previous = self.views.add(
                own, accumulator_dtype(operator), NONE, scope.sums, scope.workspace
            )
        which = Part.WHOLE if part is None else Part.LAST
        if part is not None and part[1] < scope.length:
            which = Part.PARTIAL
        start, end = part if part is not None else (0, scope.length if is_anchor else 1)
        self.step_names.append(operator.name)
        self.steps.append(
            (
                *(operator_code(operator), self._output(scope, operator, own)),
                *(len(inputs), self._words.add(inputs), *self._attributes(operator)),
                *(quantised(operator.quantisation), self.scales.of(operator)),
                *(*limits(operator.quantisation), which, start, end, previous, 0),
            )
        )

    def _input(self, scope: _Scope, name: str, box: Box) -> int:
        """Add the view of what is read: of what was computed before, or of memory."""
        candidates = [piece for piece in scope.given if piece.of == name]
        if name in scope.computed:
            candidates = [scope.computed[name]]
        dtype = self._network.tensors[name].dtype
        return self.views.add(box, dtype, self.values.number(name), candidates, scope.workspace)

    def _output(self, scope: _Scope, operator: Operator, own: Box) -> int:
        """Add the view of what is written: in memory for the group's output."""
        dtype = self._network.tensors[operator.output].dtype
        value = self.values.number(operator.output)
        if operator.output == scope.group.output:
            if scope.leaves_sums:
                dtype, value = accumulator_dtype(operator), NONE
            return self.views.add(
                own,
                dtype,
                value,
                scope.results,
                scope.workspace,
                may_be_direct=not scope.in_place,
            )
        result = self._in_workspace(scope, operator.output, own, dtype)
        scope.computed[operator.output] = result
        return self.views.add(own, dtype, value, [result], scope.workspace)

    def _in_workspace(
        self, scope: _Scope, name: str, box: Box, dtype: np.dtype[np.generic]
    ) -> Piece:
        strides = row_major_strides(extents(box), dtype.itemsize)
        size = dtype.itemsize * int(np.prod(extents(box), dtype=np.int64))
        return Piece(
            of=name,
            partial=False,
            box=box,
            offset=scope.workspace.take(size),
            memory=None,
            residency=None,
            strides=strides,
        )

    def _attributes(self, operator: Operator) -> tuple[int, int]:
        """Return the first of an operator's attributes and how many there are."""
        if operator.output not in self._attributes_of:
            rows = attribute_rows(operator, self._words, self._texts)
            self._attributes_of[operator.output] = (len(self.attributes), len(rows))
            self.attributes += rows
        return self._attributes_of[operator.output]

    def _piece(self, slice_: int, residency: ResidencyIdx) -> Piece:
        subject = self._subject
        return piece_of(subject.problem, subject.plan, self._addresses, slice_, residency)

    def _at_anchor(self, group: Group, piece: Piece) -> Piece:
        """Return a piece of a group's partial sums in the axes of its anchor's output.

        Axes of length 1 may come and go; the others are the same ones.
        """
        box = box_of_anchor(self._network, group, piece.box)
        shape = self._network.tensors[group.output].shape
        long = (own for own, length in zip(piece.strides, shape, strict=True) if length > 1)
        anchor = self._network.tensors[group.operators[group.anchor].output]
        strides = tuple(0 if length == 1 else next(long) for length in anchor.shape)
        return replace(piece, box=box, strides=strides)

    def _shares_bytes(self, placement: Placement) -> bool:
        """Say whether a task writes bytes that it reads."""
        residencies = self._subject.plan.residencies
        return any(
            residencies[read].memory == residencies[write].memory
            and residencies[read].offset
            < residencies[write].offset + self._subject.span(residencies[write])
            and residencies[write].offset
            < residencies[read].offset + self._subject.span(residencies[read])
            for read in placement.reads
            for write in placement.writes
        )


def _tile(task: Task) -> Tile:
    if task.tile is None:
        raise ExportError(f"tables: task {comment(task.name)} is no tile of a group of the model")
    return task.tile
