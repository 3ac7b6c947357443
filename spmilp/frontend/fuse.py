"""Operators are fused into groups that one task computes, as TVM does.

The rules are those of T. Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep
Learning", OSDI 2018, section 3, with post-dominators as in its implementation: a result is fused
with what reads it only if every path from it goes through the last operator of the group. A group
thus has one way out, so that groups cannot wait for each other in a circle, and no work is done
twice except in the halos of tiles.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import networkx as nx

from spmilp.frontend.graph import Group, Operator
from spmilp.frontend.operators.geometry import Fusion
from spmilp.frontend.operators.moves import keeps_boxes, without_ones
from spmilp.frontend.operators.registry import core_operator, family_of
from spmilp.frontend.passes import Fuse
from spmilp.frontend.unfused import UnfusedNetwork, is_view, present_inputs
from spmilp.machine.machine import CoreKind

ANCHORS = frozenset({Fusion.COMPLEX, Fusion.REDUCTION})
BOX_TO_BOX = frozenset({"Pad", "Transpose", "Trilu"})
"""Injective operators that need of their input a box for each box, and no element twice."""

TABLES = frozenset({"Gather", "GatherND"})
"""Operators that read their first input where the second one says, if they have one."""

LIGHT = frozenset({Fusion.ELEMENTWISE, Fusion.INJECTIVE})


def fuse(
    network: UnfusedNetwork,
    kinds: Sequence[CoreKind] = (),
    how: Fuse = Fuse.DEFAULT,
    fits: Callable[[Group], bool] | None = None,
) -> tuple[Group, ...]:
    """Return the groups of a network, whose outputs no views write, in topological order.

    Operators are only fused if one of the ``kinds`` of core, where any are given, can run all of
    them, and into groups of which ``fits`` is true.
    """
    fuser = _Fuser(network, kinds, fits)
    if how is not Fuse.NONE:
        fuser.fuse(by_classes=how is Fuse.TVM)
    return fuser.groups()


def _readers(
    network: UnfusedNetwork, consumers: dict[str, list[Operator]], name: str
) -> Iterator[Operator | None]:
    """Yield the operators that read a tensor, ``None`` for a reader that needs it in memory."""
    if name in network.outputs:
        yield None
    for reader in consumers.get(name, []):
        if not is_view(reader):
            yield reader
        elif keeps_boxes(reader, network.tensors):
            yield from _readers(network, consumers, reader.output)
        else:
            yield None


def _dominators(readers: list[tuple[int, ...] | None]) -> tuple[int | None, ...]:
    """Return the immediate post-dominators; all paths end behind the last operator."""
    end = len(readers)
    backwards = nx.DiGraph()
    backwards.add_node(end)
    for position, found in enumerate(readers):
        backwards.add_edges_from((reader, position) for reader in found or (end,))
    parents = nx.immediate_dominators(backwards, end)
    return tuple(None if parents[at] == end else parents[at] for at in range(end))


class _Fuser:
    """Grows groups of the operators that compute; their positions in ``operators`` stand for them.

    A result is read directly or through views that only add or drop axes of length 1. For each
    operator, ``readers`` are those that read its result, ``None`` when it must be in memory because
    it is an output or because another view shows it; ``dominator`` is the first operator that all
    paths from its result go through, ``None`` if none.
    """

    def __init__(
        self, graph: UnfusedNetwork, kinds: Sequence[CoreKind], fits: Callable[[Group], bool] | None
    ) -> None:
        self._kinds, self._fits = kinds, fits
        self._producers = graph.producers()
        self._order = {name: at for at, name in enumerate(self._producers)}
        self.operators = [operator for operator in graph.operators if not is_view(operator)]
        self._classes = [family_of(operator.kind).fusion for operator in self.operators]
        shapes = (graph.tensors[operator.output].shape for operator in self.operators)
        self._shapes = [*map(without_ones, shapes)]
        # For each operator the members of its group; members share the set.
        self._members = [{position} for position in range(len(self._classes))]
        positions = {operator.output: at for at, operator in enumerate(self.operators)}
        consumers = graph.consumers()
        self.readers: list[tuple[int, ...] | None] = []
        for operator in self.operators:
            found = [*_readers(graph, consumers, operator.output)]
            known = {positions[reader.output] for reader in found if reader is not None}
            self.readers.append(None if None in found else tuple(sorted(known)))
        self.dominator = _dominators(self.readers)
        # The operator whose result a tensor is, or shows.
        self._origin = positions
        for view in filter(is_view, graph.operators):
            if view.inputs[0] in self._origin and keeps_boxes(view, graph.tensors):
                self._origin[view.output] = self._origin[view.inputs[0]]

    def fuse(self, *, by_classes: bool) -> None:
        """Fuse as long as no element is computed more than once, except in halos of tiles.

        By TVM's classes alone: element-wise operators join the complex one before them, injective
        ones each other, even if elements are computed again, and the reduction behind them.
        """
        positions = range(len(self._classes))
        anchors = {Fusion.COMPLEX} if by_classes else ANCHORS
        # Where several anchors feed one operator, the last of them takes it, so that a group never
        # waits for an anchor that is computed later.
        for position in reversed(positions):
            if self._classes[position] in anchors:
                self._extend(position, partial(self._all_like, position))
        for position in positions:
            if len(self._members[position]) == 1 and self._is_light(position):
                self._extend(position, self._all_light if by_classes else None)
        for position in positions:
            self._join_only_reader(position, reductions_only=by_classes)

    def groups(self) -> tuple[Group, ...]:
        """Return the groups as they are, in topological order."""
        # Sorted by the last member, which alone is read by others, they are in topological order.
        last = sorted({max(members) for members in self._members})
        return tuple(self._group(index, self._members[exit_]) for index, exit_ in enumerate(last))

    def _extend(self, last: int, fits: Callable[[tuple[int, ...]], bool] | None) -> None:
        """Add what follows an operator, path by path up to the next dominator, while it fits.

        By default what fits is light and computes no element more than once.
        """
        while (path := self._path(last)) is not None:
            allowed = self._keeps_work(last, path) if fits is None else fits(path)
            if not (allowed and self._merge(last, path)):
                return
            last = path[-1]

    def _all_like(self, anchor: int, path: Sequence[int]) -> bool:
        """Return whether element-wise operators keep the shape of an anchor."""
        return all(
            self._classes[p] is Fusion.ELEMENTWISE and self._shapes[p] == self._shapes[anchor]
            for p in path
        )

    def _all_light(self, path: Sequence[int]) -> bool:
        return all(self._classes[position] in LIGHT for position in path)

    def _keeps_work(self, before: int, path: tuple[int, ...]) -> bool:
        """Return whether tiles at the end of a path need disjoint parts of what is before it."""
        boxes = len(path) == 1 and self.operators[path[0]].kind in BOX_TO_BOX
        return boxes or self._all_like(before, path)

    def _join_only_reader(self, last: int, *, reductions_only: bool = False) -> None:
        """Let a light group that one operator reads be computed where it is read.

        Done for an element-wise reader, in whatever group it is, and for the first input of a
        reduction: both need every element once. A group that looks up a table by computed indices
        joins no reduction: each tile of the reduction would need the whole table, while tiles of
        the looked-up rows alone share it.
        """
        if last != max(self._members[last]) or not self._is_light(last):
            return
        readers = self.readers[last]
        if readers is None or len(readers) != 1:
            return
        (reader,) = readers
        if self._classes[reader] is Fusion.ELEMENTWISE:
            allowed = not reductions_only and self._shapes[last] == self._shapes[reader]
        else:
            allowed = self._classes[reader] is Fusion.REDUCTION and self._is_data(last, reader)
            allowed = allowed and (reductions_only or not self._looks_up(last))
        if allowed:
            self._merge(reader, self._members[last])

    def _looks_up(self, position: int) -> bool:
        """Return whether an operator of a group reads a table at positions that are not known."""
        members = (self.operators[member] for member in self._members[position])
        return any(one.kind in TABLES and len(present_inputs(one)) > 1 for one in members)

    def _is_data(self, source: int, reduction: int) -> bool:
        """Return whether a reduction reads a result as its first input, and only there."""
        inputs = self.operators[reduction].inputs
        return [self._origin.get(name) == source for name in inputs] == [
            position == 0 for position in range(len(inputs))
        ]

    def _path(self, last: int) -> tuple[int, ...] | None:
        """Return the operators up to the dominator of ``last`` if all are free, else ``None``."""
        dominator = self.dominator[last]
        if dominator is None:
            return None
        found, waiting = {dominator}, [*(self.readers[last] or ())]
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                waiting.extend(self.readers[position] or ())
        return tuple(sorted(found)) if all(len(self._members[p]) == 1 for p in found) else None

    def _merge(self, into: int, positions: Iterable[int]) -> bool:
        """Join operators to the group of ``into``, if it fits and some kind of core can run it."""
        members = self._members[into] | set(positions)
        needed = {core_operator(self.operators[p].kind) for p in members}
        able = (kind.operators is None or needed <= kind.operators for kind in self._kinds)
        if self._kinds and not any(able):
            return False
        if self._fits and not self._fits(self._group(0, members)):
            return False
        for position in members:
            self._members[position] = members
        return True

    def _is_light(self, position: int) -> bool:
        return self._all_light([*self._members[position]])

    def _group(self, index: int, members: set[int]) -> Group:
        exit_ = max(members)
        anchor = next((p for p in sorted(members) if self._classes[p] in ANCHORS), exit_)
        own = {self.operators[position].output for position in members}
        operators = self._with_views(own, self.operators[anchor].output)
        written = {operator.output for operator in operators}
        read = dict.fromkeys(name for operator in operators for name in present_inputs(operator))
        carrier = self.operators[anchor]
        return Group(
            index=index,
            name=carrier.name,
            operators=operators,
            anchor=operators.index(carrier),
            inputs=tuple(name for name in read if name not in written),
            output=self.operators[exit_].output,
        )

    def _with_views(self, own: set[str], anchor: str) -> tuple[Operator, ...]:
        """Return the operators that write ``own`` and the views they read through.

        What does not depend on the anchor comes first, then the anchor, then what follows from it.
        """
        before: list[Operator] = []
        behind: list[Operator] = []
        following = {anchor}
        for name in sorted(self._ancestors(own), key=self._order.__getitem__):
            producer = self._producers[name]
            if following.isdisjoint({name, *producer.inputs}):
                before.append(producer)
            else:
                following.add(name)
                behind.append(producer)
        return (*before, *behind)

    def _ancestors(self, own: set[str]) -> set[str]:
        """Return ``own`` and the views through which their operators read."""
        found: set[str] = set()
        waiting = list(own)
        while waiting:
            name = waiting.pop()
            producer = self._producers.get(name)
            if name in found or producer is None or not (name in own or is_view(producer)):
                continue
            found.add(name)
            waiting.extend(present_inputs(producer))
        return found
