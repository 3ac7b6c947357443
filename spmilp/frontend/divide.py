"""Operators of which no tile fits a memory become several that tiles can cut.

A reduction is done in steps: along all its axes but the first, then along that. A single axis is
seen as rows: each is reduced, then what they gave. Normalisations, Softmax and the positions of
extremes become reductions and element-wise operators. Between them are float32 where the operator
has half-precision floats or integers that stand for reals, so that only the last one rounds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from math import isqrt, prod

import numpy as np
from numpy.typing import ArrayLike

from spmilp.frontend.graph import Attribute, Group, Network, Operator, Quantisation, Scale, Tensor
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.reductions import EACH
from spmilp.frontend.operators.registry import core_operator, family_of, geometries
from spmilp.frontend.regions import (
    group_regions,
    kinds_to_run,
    overwritable_inputs,
    splittable_axes,
)
from spmilp.frontend.unfused import UnfusedNetwork, is_view, present_inputs
from spmilp.frontend.workspace import workspace_of
from spmilp.machine.machine import Machine
from spmilp.units import LARGEST, Bytes, Extents, align_up

SHARES = 16
"""Parts of a divided operator take at most one of so many shares of a memory: eight cores of a
cluster may each work on one and load the next."""

NEAR = 4
"""Rows are of equal length where that is at most so many times the root of an axis's length."""

ROUNDED = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
"""Reductions whose results integers can only be near, so that steps would differ."""

STEPS: Mapping[str, tuple[str, str]] = {
    "ReduceLogSum": ("ReduceSum", "ReduceLogSum"),
    "ReduceSumSquare": ("ReduceSumSquare", "ReduceSum"),
}
"""The first and the last step of reductions that are not the same in all steps."""

TYPES: Mapping[str, np.dtype[np.generic]] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), np.dtype(np.int64)),
    "Cast": np.dtype(np.float32),
    "Equal": np.dtype(np.bool_),
}
"""Types of results that are not those of the last operand."""


def rooms_of(machine: Machine) -> tuple[Bytes, ...]:
    """Return the bytes of the largest memory in which cores of each kind work."""
    rooms = [0] * len(machine.kinds)
    for core in machine.cores:
        usable = machine.memories[core.memory].usable
        rooms[core.kind] = max(rooms[core.kind], LARGEST if usable is None else usable)
    return tuple(rooms)


def fits(network: Network, machine: Machine, group: Group, shares: int = 1) -> bool:
    """Say whether a smallest tile of a group fits a share of the room of a core that can run it.

    That is what it reads, its result unless it may lie over an operand, and the workspace of its
    kernels, where what others compute may lie in pieces. Products always fit: tasks split their
    sums. So does what no core can run.
    """
    kinds, tensors = kinds_to_run(group), network.tensors
    able = [one.index for one in machine.kinds if one.operators is None or kinds <= one.operators]
    if not able or geometries(network)[group.operators[group.anchor]].reduction > 1:
        return True
    shape, item = tensors[group.output].shape, tensors[group.output].dtype.itemsize
    box = tuple(
        (length // 2, length // 2 + 1) if splits else (0, length)
        for length, splits in zip(shape, splittable_axes(network, group), strict=True)
    )
    regions, written = group_regions(network, group, box), volume(box) * item
    read = {
        name: volume(regions[name]) * tensors[name].dtype.itemsize
        for name in group.inputs
        if name in regions
    }
    given = {*network.inputs, *(name for name in read if tensors[name].values is not None)}
    pieces = frozenset(read.keys() - given)
    workspace = workspace_of(network, group, regions, None, pieces, gives_sums=False).bytes
    over = max((read.get(name, 0) for name in overwritable_inputs(network, group)), default=0)
    alignment = min(machine.memories[core.memory].alignment for core in machine.cores)
    needed = sum(align_up(size, alignment) for size in (*read.values(), written, workspace))
    rooms = network.passes.rooms or rooms_of(machine)
    room = max(rooms[min(index, len(rooms) - 1)] for index in able)
    return needed - min(over, written) <= room // shares


def divide(network: UnfusedNetwork, seen: Network, machine: Machine) -> UnfusedNetwork:
    """Return a network with operators that fit no memory of a machine divided, if they can be.

    They become operators that some kind of core can run. ``seen`` is the network as it is.
    """
    tensors = dict(network.tensors)
    seen = replace(seen, tensors=tensors)

    def parts(operator: Operator, shares: int = 1) -> Iterator[Operator]:
        """Yield what becomes of an operator; its parts are divided, too."""
        division, group = Division(operator, tensors), _alone(operator)
        if fits(seen, machine, group, shares) or not division.succeeds(machine):
            yield operator
        else:
            for part in division.operators:
                yield from parts(part, SHARES)

    operators = tuple(part for operator in network.operators for part in parts(operator))
    return replace(network, operators=operators, tensors=tensors)


def _alone(operator: Operator) -> Group:
    inputs, output = present_inputs(operator), operator.output
    return Group(index=0, name="", operators=(operator,), anchor=0, inputs=inputs, output=output)


class Division:
    """Operators in place of one, whose name and result the last one takes over.

    They are in topological order; ``tensors`` are the network's, to which their own are added.
    """

    def __init__(self, operator: Operator, tensors: dict[str, Tensor]) -> None:
        self.operator, self._tensors = operator, tensors
        self.operators: list[Operator] = []
        given = operator.quantisation
        self._scales = dict(zip(operator.inputs, given.inputs, strict=True)) if given else {}

    def succeeds(self, machine: Machine) -> bool:
        """Divide the operator; return whether some core can run each operator in its place."""
        own, given = self.operator, self.operator.quantisation
        if any(scale is not None and scale.axis is not None for scale in self._scales.values()):
            return False  # views would not keep that axis
        try:
            RULES[own.kind](self)
        except (KeyError, ValueError):
            return False
        last = self.operators[-1]
        scales = given and replace(given, inputs=self._scales_of(last.inputs))
        last = replace(last, name=own.name, output=own.output, quantisation=scales)
        self.operators[-1] = last
        able = [kind.operators for kind in machine.kinds]
        kinds = {core_operator(one.kind) for one in self.operators if not is_view(one)}
        return all(any(some is None or kind in some for some in able) for kind in kinds)

    def shape(self, name: str) -> Extents:
        """Return the shape of a tensor."""
        return self._tensors[name].shape

    def dtype(self, name: str) -> np.dtype[np.generic]:
        """Return the type in which results of a tensor's elements are kept."""
        dtype = self._tensors[name].dtype
        is_narrow = self._scales.get(name) or dtype.name in ("float16", "bfloat16")
        return np.dtype(np.float32) if is_narrow else dtype

    def constant(self, values: ArrayLike, like: str) -> str:
        """Add a constant of the type of a tensor's results and return its name."""
        data, name = np.asarray(values, self.dtype(like)), self._new_name("constant")
        self._tensors[name] = Tensor(name=name, shape=data.shape, dtype=data.dtype, data=data)
        return name

    def add(self, kind: str, *inputs: str, **attributes: Attribute) -> str:
        """Add an operator and return the name of its result."""
        output, given = self._new_name(kind), [self._tensors[name] for name in inputs]
        name = output.replace(self.operator.output, self.operator.name, 1)
        made = Operator(name=name, kind=kind, inputs=inputs, output=output, attributes=attributes)
        dtype = TYPES.get(kind) or self.dtype(inputs[-1])
        if is_view(made):
            dtype, self._scales[output] = given[0].dtype, self._scales.get(inputs[0])
        elif any(scales := self._scales_of(inputs)):
            made = replace(made, quantisation=Quantisation(inputs=scales, output=None))
        shape = family_of(kind)(made, given).shape
        self._tensors[output] = Tensor(name=output, shape=shape, dtype=dtype)
        self.operators.append(made)
        return output

    def reduce(self, kind: str, name: str, axes: Sequence[int], less: str = "") -> str:
        """Reduce along all axes but the first, or the rows of a single one.

        A reduction of the result along ``axes`` then gives what one of all would have given. From
        the elements those of ``less`` are subtracted, if given, of which ``axes`` have length 1.
        """
        first, *others = (axis for axis in axes if self.shape(name)[axis] > 1)
        if others:
            data = self.add("Sub", name, less) if less else name
            return self.add(kind, data, axes=tuple(others), keepdims=1)
        rows = [*self.rows(name, first)]
        if less:
            less = self.add("Unsqueeze", less, axes=(first,))
            rows = [self.add("Sub", one, less) for one in rows]
        return self.of_rows(kind, rows, first)

    def rows(self, name: str, axis: int) -> Iterator[str]:
        """Yield views of a tensor: one axis as rows of one length, then what remains as a row."""
        shape, length = self.shape(name), self.shape(name)[axis]
        size = length_of_rows(length)
        even = length - length % size
        for start, stop, row in ((0, even, size), (even, length, length - even)):
            part = name
            if 0 < stop - start < length:
                ends: dict[str, Attribute] = {"starts": (start,), "ends": (stop,)}
                part = self.add("Slice", name, axes=(axis,), steps=(1,), **ends)
            if start < stop:
                cut = (*shape[:axis], (stop - start) // row, row, *shape[axis + 1 :])
                yield self.add("Reshape", part, shape=cut)

    def of_rows(self, kind: str, rows: Sequence[str], axis: int, **how: Attribute) -> str:
        """Reduce rows and return the name of one tensor of what they give."""
        found = [self.add(kind, one, axes=(axis + 1,), keepdims=0, **how) for one in rows]
        return found[0] if len(found) == 1 else self.add("Concat", *found, axis=axis)

    def _scales_of(self, inputs: Sequence[str]) -> tuple[Scale | None, ...]:
        return tuple(map(self._scales.get, inputs))

    def _new_name(self, label: str) -> str:
        name = f"{self.operator.output}/{label}"
        others = (f"{name}_{number}" for number in count(2))
        return next(one for one in chain([name], others) if one not in self._tensors)


def length_of_rows(length: int) -> int:
    """Return how long rows of an axis are: about the root of its length, and equal if possible."""
    root = isqrt(length)
    if root < 2:
        raise ValueError(f"an axis of {length} elements is too short for rows")
    rows = next(number for number in range(root, 0, -1) if length % number == 0)
    return length // rows if rows > 1 and rows * NEAR >= root else root


def _reduction(division: Division) -> None:
    own = division.operator
    (name,), axes, keepdims = own.inputs, own.integers("axes"), own.integer("keepdims")
    if own.kind in ROUNDED and np.issubdtype(division.dtype(name), np.integer):
        raise ValueError("steps would round")
    if own.kind == "ReduceMean":
        terms = prod(division.shape(name)[axis] for axis in axes)
        total = division.add("ReduceSum", name, axes=axes, keepdims=keepdims)
        division.add("Div", total, division.constant(terms, total))
    else:
        first, last = STEPS.get(own.kind, (own.kind, own.kind))
        division.add(last, division.reduce(first, name, axes), axes=axes, keepdims=keepdims)


def _softmax(division: Division) -> None:
    (name,), axis = division.operator.inputs, division.operator.integer("axis")
    logarithm = division.add("ReduceLogSumExp", name, axes=(axis,), keepdims=1)
    below = division.add("Sub", name, logarithm)
    if division.operator.kind == "Softmax":
        division.add("Exp", below)


def _position(division: Division) -> None:
    """Find the rows whose extreme is that of all, and the first or last position in these.

    Positions are reduced as float32, which has all integers up to 2 to the power of 24.
    """
    own, extreme = division.operator, division.operator.kind.replace("Arg", "Reduce")
    (name,), (axis,), is_last = own.inputs, own.integers("axes"), own.integer("select_last_index")
    length, rows = division.shape(name)[axis], [*division.rows(name, axis)]
    if length > 1 << 24:
        raise ValueError(f"{length} positions do not fit float32")
    value = division.of_rows(extreme, rows, axis)
    place = division.of_rows(own.kind, rows, axis, select_last_index=is_last)
    place = division.add("Cast", place)
    shape = division.shape(value)
    first = np.arange(shape[axis]) * length_of_rows(length)
    first = first.reshape(-1, *(1,) * (len(shape) - axis - 1))
    place = division.add("Add", place, division.constant(first, place))
    best = division.add("Equal", value, division.add(extreme, value, axes=(axis,), keepdims=1))
    worst = division.constant(0 if is_last else length - 1, place)
    place, last = division.add("Where", best, place, worst), "ReduceMax" if is_last else "ReduceMin"
    place = division.add(last, place, axes=(axis,), keepdims=own.integer("keepdims"))
    division.add("Cast", place)


def _normalise(division: Division) -> None:
    """Divide by the root of a mean of squares, multiply by a scale, add a bias.

    The channels of a group become an axis, and what is found for it is repeated for each of them.
    """
    own, (data, *factors) = division.operator, division.operator.inputs
    shape = division.shape(data)
    seen, one_each, grouped = data, shape, shape[:0]
    if "axis" in own.attributes:
        axes = tuple(range(own.integer("axis"), len(shape)))
    else:
        batch, channels, *lengths = shape
        groups = channels if "Instance" in own.kind else own.integer("num_groups")
        axes, ones = tuple(range(2, 3 + len(lengths))), (1,) * len(lengths)
        grouped, one_each = (batch, groups, channels // groups), (batch, channels, *ones)
        seen = division.add("Reshape", data, shape=(*grouped, *lengths))
        factors = [division.add("Reshape", one, shape=one_each[1:]) for one in factors]

    def for_each(found: str) -> str:
        if grouped:
            found = division.add("Expand", found, shape=(*grouped, *one_each[2:]))
            found = division.add("Reshape", found, shape=one_each)
        return found

    mean = ""
    if not own.kind.startswith("RMS"):
        mean = division.add("ReduceMean", seen, axes=axes, keepdims=1)
        data = division.add("Sub", data, for_each(mean))
    squares = division.reduce("ReduceSumSquare", seen, axes, mean)
    total = division.add("ReduceSum", squares, axes=axes, keepdims=1)
    terms = prod(division.shape(seen)[axis] for axis in axes)
    variance = division.add("Div", total, division.constant(terms, total))
    variance = division.add("Add", variance, division.constant(own.number("epsilon"), total))
    data = division.add("Div", data, for_each(division.add("Sqrt", variance)))
    for kind, factor in zip(("Mul", "Add"), filter(None, factors), strict=False):
        data = division.add(kind, data, factor)


def _pool(division: Division) -> None:
    """Reduce what is under the one window that covers all."""
    own, (name,) = division.operator, division.operator.inputs
    lengths = division.shape(name)[2:]
    if "Global" not in own.kind and (
        own.integers("kernel_shape") != lengths or any(own.integers("pads"))
    ):
        raise ValueError("smaller windows are not divided")
    kind, axes = "ReduceMax" if "Max" in own.kind else "ReduceMean", range(2, 2 + len(lengths))
    division.add(kind, name, axes=tuple(axes), keepdims=1)


RULES: Mapping[str, Callable[[Division], None]] = {
    **dict.fromkeys(EACH, _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _position),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), _normalise),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _normalise),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"), _pool),
}
"""What is made of an operator in a division, for each kind; a ``ValueError`` if nothing can be."""
