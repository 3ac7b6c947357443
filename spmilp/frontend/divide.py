"""Operators of which no tile fits a memory become several that tiles can cut.

A reduction is done in steps: along all its axes but the first, then along that. A single axis is
seen as rows: each is reduced, then what they gave. Normalisations, Softmax and the positions of
extremes become reductions and element-wise operators. Between them are float32 where the operator
has half-precision floats or integers that stand for reals, so that only the last one rounds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isqrt, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from spmilp.frontend.fuse import fuse
from spmilp.frontend.graph import Attribute, Group, Network, Operator, Quantisation, Tensor
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.reductions import EACH
from spmilp.frontend.operators.registry import core_operator, family_of, geometries
from spmilp.frontend.passes import Fuse
from spmilp.frontend.regions import (
    group_regions,
    kinds_to_run,
    overwritable_inputs,
    splittable_axes,
)
from spmilp.frontend.unfused import UnfusedNetwork, is_view
from spmilp.machine.machine import Machine
from spmilp.units import Extents, align_up

SHARES = 16
"""Parts of a divided operator take at most one of so many shares of a memory: eight cores of a
cluster may each work on one and load the next."""

NEAR = 4
"""Rows are of equal length where that is at most so many times the root of an axis's length."""

SHORTEST = 4
"""Shorter axes are not cut into rows."""

ROUNDED = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
"""Reductions whose results integers can only be near, so that steps would differ."""

STEPS: Mapping[str, tuple[str, str]] = {
    "ReduceLogSum": ("ReduceSum", "ReduceLogSum"),
    "ReduceSumSquare": ("ReduceSumSquare", "ReduceSum"),
}
"""The first and the last step of reductions that are not the same in all steps."""


def fits(network: Network, machine: Machine, group: Group, shares: int = 1) -> bool:
    """Say whether a smallest tile of a group fits a share of the memory of a core that can run it.

    What it reads, and its result unless that lies over an operand. Products always fit: tasks split
    their sums. So does what no core can run.
    """
    kinds, tensors = kinds_to_run(group), network.tensors
    able = {one.index for one in machine.kinds if one.operators is None or kinds <= one.operators}
    memories = {core.memory for core in machine.cores if core.kind in able}
    if not memories or geometries(network)[group.operators[group.anchor]].reduction > 1:
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
    over = max((read.get(name, 0) for name in overwritable_inputs(network, group)), default=0)
    for memory in (machine.memories[index] for index in memories):
        needed = sum(align_up(size, memory.alignment) for size in (*read.values(), written))
        if memory.usable is None or needed - min(over, written) <= memory.usable // shares:
            return True
    return False


def divide(network: UnfusedNetwork, machine: Machine) -> UnfusedNetwork:
    """Return the network with operators that fit no memory of a machine divided, if they can be.

    Only into operators that some kind of core can run.
    """
    parts: set[str] = set()
    while True:
        seen, divisions = as_network(network), dict[str, Division]()
        for group in fuse(network, how=Fuse.NONE):
            operator = group.operators[group.anchor]
            shares = SHARES if operator.output in parts else 1
            if operator.kind in RULES and not fits(seen, machine, group, shares):
                divisions |= _divisions(network, machine, operator)
        if not divisions:
            return network
        operators: list[Operator] = []
        tensors = dict(network.tensors)
        for operator in network.operators:
            found = divisions.get(operator.output)
            operators += found.operators if found else (operator,)
            tensors |= found.tensors if found else {}
        parts |= {one.output for found in divisions.values() for one in found.operators}
        network = replace(network, operators=tuple(operators), tensors=tensors)


def as_network(network: UnfusedNetwork) -> Network:
    """Return a network without name and groups: what questions about a group need."""
    return Network(
        name="",
        tensors=network.tensors,
        groups=(),
        inputs=network.inputs,
        outputs=network.outputs,
        sha256="",
    )


def _divisions(
    network: UnfusedNetwork, machine: Machine, operator: Operator
) -> "dict[str, Division]":
    """Return the division of an operator, by its result, if there is one that cores can run."""
    division = Division(operator, network.tensors)
    try:
        RULES[operator.kind](division)
    except ValueError:
        return {}
    kinds = {core_operator(one.kind) for one in division.operators if not is_view(one)}
    able = [one.operators for one in machine.kinds]
    if all(any(some is None or kind in some for some in able) for kind in kinds):
        return {operator.output: division}
    return {}


Before: TypeAlias = Callable[[str, str], str]
"""Adds operators on the elements of a tensor and on what broadcasts to it; returns their result."""


class Division:
    """Operators in place of one; their names begin with its name, which the last one has.

    Attributes
    ----------
    operators
        In topological order.
    tensors
        Constants of theirs, and what they give, but for the last one.
    dtype
        Of what lies between them.
    """

    def __init__(self, operator: Operator, tensors: Mapping[str, Tensor]) -> None:
        self.operator, self._known, given = operator, tensors, operator.quantisation
        self.operators: list[Operator] = []
        self.tensors: dict[str, Tensor] = {}
        scales = (None,) * len(operator.inputs) if given is None else given.inputs
        if any(scale is not None and scale.axis is not None for scale in scales):
            raise ValueError("views do not keep the axis of its scales")
        self._scales = dict(zip(operator.inputs, scales, strict=True))
        dtype = tensors[operator.inputs[0]].dtype
        is_narrow = given is not None or dtype.name in ("float16", "bfloat16")
        self.dtype = np.dtype(np.float32) if is_narrow else dtype

    def shape(self, name: str) -> Extents:
        """Return the shape of a tensor."""
        return self._tensor(name).shape

    def constant(self, values: ArrayLike, dtype: np.dtype[np.generic] | None = None) -> str:
        """Add a constant and return its name."""
        data, name = np.asarray(values, dtype or self.dtype), self._free_name("constant")
        self.tensors[name] = Tensor(name=name, shape=data.shape, dtype=data.dtype, data=data)
        return name

    def add(
        self,
        kind: str,
        *inputs: str,
        dtype: np.dtype[np.generic] | None = None,
        **attributes: Attribute,
    ) -> str:
        """Add an operator and return the name of its result, of the type ``dtype`` of it all."""
        output = self._free_name(kind)
        operator = Operator(
            name=output.replace(self.operator.output, self.operator.name, 1),
            kind=kind,
            inputs=inputs,
            output=output,
            attributes=attributes,
        )
        given = [self._tensor(name) for name in inputs]
        if is_view(operator):
            dtype, self._scales[output] = given[0].dtype, self._scales.get(inputs[0])
        elif any(map(self._scales.get, inputs)):
            operator = replace(operator, quantisation=self._quantisation(inputs))
        shape = family_of(kind)(operator, given).shape
        self.tensors[output] = Tensor(name=output, shape=shape, dtype=dtype or self.dtype)
        self.operators.append(operator)
        return output

    def end(self, kind: str, *inputs: str, **attributes: Attribute) -> None:
        """Add the operator that gives the result."""
        own, given = self.operator, self.operator.quantisation
        given = given and replace(given, inputs=self._quantisation(inputs).inputs)
        own = replace(own, kind=kind, inputs=inputs, attributes=attributes, quantisation=given)
        self.operators.append(own)

    def reduce(
        self, kind: str, name: str, axes: Sequence[int], before: Before | None, beside: str = ""
    ) -> str:
        """Reduce along all axes but the first, or the rows of a single one.

        A reduction of the result along ``axes`` then gives what one of all would have given.

        Parameters
        ----------
        before
            What is done with the elements first, and with those of ``beside``, of which ``axes``
            have length 1.
        """
        before = before or (lambda data, _: data)
        first, *others = (axis for axis in axes if self.shape(name)[axis] > 1)
        if others:
            return self.add(kind, before(name, beside), axes=tuple(others), keepdims=1)
        beside = beside and self.add("Unsqueeze", beside, axes=(first,))
        rows = (before(one, beside) for one in self.rows(name, first))
        return self.joined(
            [self.add(kind, one, axes=(first + 1,), keepdims=0) for one in rows], first
        )

    def rows(self, name: str, axis: int) -> Iterator[str]:
        """Yield views of a tensor: one axis as rows of one length, then what remains as a row."""
        shape, length = self.shape(name), self.shape(name)[axis]
        size = length_of_rows(length)
        even = length - length % size
        for start, stop, row in ((0, even, size), (even, length, length - even)):
            part = name
            if 0 < stop - start < length:
                bounds = {"starts": (start,), "ends": (stop,), "axes": (axis,), "steps": (1,)}
                part = self.add("Slice", name, **bounds)
            if start < stop:
                cut = (*shape[:axis], (stop - start) // row, row, *shape[axis + 1 :])
                yield self.add("Reshape", part, shape=cut)

    def joined(self, names: Sequence[str], axis: int) -> str:
        """Return one tensor of what the rows gave, and what remained."""
        return names[0] if len(names) == 1 else self.add("Concat", *names, axis=axis)

    def _tensor(self, name: str) -> Tensor:
        return self.tensors[name] if name in self.tensors else self._known[name]

    def _quantisation(self, inputs: Sequence[str]) -> Quantisation:
        return Quantisation(inputs=tuple(map(self._scales.get, inputs)), output=None)

    def _free_name(self, label: str) -> str:
        name = f"{self.operator.output}/{label}_{len(self.tensors)}"
        while name in self._known:
            name += "_"
        return name


def length_of_rows(length: int) -> int:
    """Return how long rows of an axis are: about the root of its length, and equal if possible."""
    if length < SHORTEST:
        raise ValueError(f"an axis of {length} elements is too short for rows")
    root = isqrt(length)
    rows = next(count for count in range(root, 0, -1) if length % count == 0)
    return length // rows if rows > 1 and rows * NEAR >= root else root


def _reduction(division: Division) -> None:
    own = division.operator
    (name,), axes, keepdims = own.inputs, own.integers("axes"), own.integer("keepdims")
    if own.kind in ROUNDED and np.issubdtype(division.dtype, np.integer):
        raise ValueError("steps would round")
    if own.kind == "ReduceMean":
        count = prod(division.shape(name)[axis] for axis in axes)
        total = division.add("ReduceSum", name, axes=axes, keepdims=keepdims)
        division.end("Div", total, division.constant(count))
    elif own.kind == "ReduceLogSumExp":
        greatest = division.add("ReduceMax", name, axes=axes, keepdims=1)
        sums = division.reduce("ReduceSum", name, axes, _exponential(division), greatest)
        total = division.add("ReduceSum", sums, axes=axes, keepdims=keepdims)
        if not keepdims:
            greatest = division.add("Squeeze", greatest, axes=axes)
        division.end("Add", division.add("Log", total), greatest)
    else:
        first, last = STEPS.get(own.kind, (own.kind, own.kind))
        division.end(last, division.reduce(first, name, axes, None), axes=axes, keepdims=keepdims)


def _exponential(division: Division) -> Before:
    return lambda data, greatest: division.add("Exp", division.add("Sub", data, greatest))


def _softmax(division: Division) -> None:
    (name,), axes = division.operator.inputs, (division.operator.integer("axis"),)
    exponential = _exponential(division)
    greatest = division.add("ReduceMax", name, axes=axes, keepdims=1)
    sums = division.reduce("ReduceSum", name, axes, exponential, greatest)
    total = division.add("ReduceSum", sums, axes=axes, keepdims=1)
    if division.operator.kind == "Softmax":
        division.end("Div", exponential(name, greatest), total)
    else:
        below = division.add("Sub", name, greatest)
        division.end("Sub", below, division.add("Log", total))


def _position(division: Division) -> None:
    """Find the rows whose extreme is that of all, and the first or last position in these."""
    own, indices = division.operator, np.dtype(np.int64)
    (name,), (axis,), is_last = own.inputs, own.integers("axes"), own.integer("select_last_index")
    extreme, length = own.kind.replace("Arg", "Reduce"), division.shape(name)[axis]
    along: Mapping[str, Attribute] = {"axes": (axis + 1,), "keepdims": 0}
    rows = [*division.rows(name, axis)]
    values = division.joined([division.add(extreme, one, **along) for one in rows], axis)
    how: Mapping[str, Attribute] = {**along, "select_last_index": is_last}
    places = [division.add(own.kind, one, dtype=indices, **how) for one in rows]
    first = np.arange(division.shape(values)[axis]) * length_of_rows(length)
    first = first.reshape(-1, *(1,) * (len(division.shape(values)) - axis - 1))
    inside, before = division.joined(places, axis), division.constant(first, indices)
    positions = division.add("Add", inside, before, dtype=indices)
    best = division.add(extreme, values, axes=(axis,), keepdims=1)
    is_best = division.add("Equal", values, best, dtype=np.dtype(np.bool_))
    worst = division.constant(0 if is_last else length - 1, indices)
    among = division.add("Where", is_best, positions, worst, dtype=indices)
    keepdims = own.integer("keepdims")
    division.end("ReduceMax" if is_last else "ReduceMin", among, axes=(axis,), keepdims=keepdims)


def _layer(division: Division) -> None:
    name, *factors = (one for one in division.operator.inputs if one)
    axes = range(division.operator.integer("axis"), len(division.shape(name)))
    _normalise(division, name, axes, factors, lambda found: found)


def _group(division: Division) -> None:
    """Let the channels of a group be an axis, and repeat what is found for each of them."""
    own, (name, *factors) = division.operator, division.operator.inputs
    batch, channels, *lengths = division.shape(name)
    groups = channels if "Instance" in own.kind else own.integer("num_groups")
    grouped, ones = (batch, groups, channels // groups), (1,) * len(lengths)
    seen = division.add("Reshape", name, shape=(*grouped, *lengths))
    shaped = [division.add("Reshape", one, shape=(channels, *ones)) for one in factors]

    def for_each(found: str) -> str:
        found = division.add("Expand", found, shape=(*grouped, *ones))
        return division.add("Reshape", found, shape=(batch, channels, *ones))

    _normalise(division, seen, range(2, 3 + len(lengths)), shaped, for_each)


def _normalise(
    division: Division,
    seen: str,
    axes: Sequence[int],
    factors: Sequence[str],
    for_each: Callable[[str], str],
) -> None:
    """Divide by the root of a mean of squares along axes, multiply by a scale, add a bias.

    Parameters
    ----------
    seen
        The data, perhaps with another shape.
    for_each
        Makes of what is found along ``axes`` what broadcasts to the data.
    """
    own, axes = division.operator, tuple(axes)
    data, before, mean = own.inputs[0], None, ""
    if not own.kind.startswith("RMS"):
        before = partial(division.add, "Sub")
        mean = division.add("ReduceMean", seen, axes=axes, keepdims=1)
        data = before(data, for_each(mean))
    squares = division.reduce("ReduceSumSquare", seen, axes, before, mean)
    total = division.add("ReduceSum", squares, axes=axes, keepdims=1)
    count = prod(division.shape(seen)[axis] for axis in axes)
    variance = division.add("Div", total, division.constant(count))
    epsilon = division.constant(own.number("epsilon"))
    root = division.add("Sqrt", division.add("Add", variance, epsilon))
    data, *last = (
        division.add("Div", data, for_each(root)),
        *zip(("Mul", "Add"), factors, strict=False),
    )
    for kind, factor in last[:-1]:
        data = division.add(kind, data, factor)
    division.end(last[-1][0], data, last[-1][1])


def _global_pool(division: Division) -> None:
    (name,) = division.operator.inputs
    kind = "ReduceMax" if "Max" in division.operator.kind else "ReduceMean"
    axes = tuple(range(2, len(division.shape(name))))
    division.end(kind, name, axes=axes, keepdims=1)


def _pool(division: Division) -> None:
    """Pool along all axes but the first, then along that."""
    own, (name,) = division.operator, division.operator.inputs
    kernel, pads = own.integers("kernel_shape"), own.integers("pads")
    if kernel == division.shape(name)[2:] and not any(pads) and own.kind != "LpPool":
        _global_pool(division)
        return
    first, *others = (axis for axis, length in enumerate(kernel) if length > 1)
    if not others:
        raise ValueError("windows along one axis are not divided")

    def along(some: Callable[[int], bool]) -> Mapping[str, Attribute]:
        known, axes = dict(own.attributes), range(len(kernel))
        for key in ("kernel_shape", "strides", "dilations"):
            values = own.integers(key)
            known[key] = tuple(values[axis] if some(axis) else 1 for axis in axes)
        known["pads"] = tuple(pads[at] * some(at % len(kernel)) for at in range(len(pads)))
        return known

    inner = division.add(own.kind, name, **along(lambda axis: axis != first))
    division.end(own.kind, inner, **along(lambda axis: axis == first))


RULES: Mapping[str, Callable[[Division], None]] = {
    **dict.fromkeys(EACH, _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _position),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), _group),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _global_pool),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
}
"""What is made of an operator in a division, for each kind; a ``ValueError`` if nothing can be."""
