"""The roofline of a network, for any tiling and plan: its arithmetic and compulsory traffic."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from spmilp.bounds.resources import bytes_on_chip
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.geometry import Fusion, Work
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import group_regions, group_work
from spmilp.lowering.cost import can_run, cannot_run, lanes_of
from spmilp.lowering.groups import class_of
from spmilp.lowering.rates import dram_rate, shared_dram_rate
from spmilp.machine.machine import CoreKind, Machine
from spmilp.units import Box, Bytes, Cycles, Interval


def compulsory_bytes(
    network: Network, of_groups: Iterable[Mapping[str, Bytes]] | None = None
) -> tuple[Bytes, Bytes]:
    """Return the bytes that every plan loads from DRAM, and those that it stores there.

    They bound every tiling: a tile reads at least what each single element of it reads. An input or
    constant that several groups read counts once, with what one of them needs at least.
    ``of_groups`` is what :func:`needed_by_groups` returns, if it is known.
    """
    loads = _loads(needed_by_groups(network) if of_groups is None else of_groups)
    stores = sum(network.tensors[name].bytes for name in network.outputs)
    return sum(loads.values()), stores


def _loads(of_groups: Iterable[Mapping[str, Bytes]]) -> Mapping[str, Bytes]:
    """Return the bytes that every plan loads of each network input and constant."""
    loads: dict[str, Bytes] = {}
    for needed in of_groups:
        for name, size in needed.items():
            loads[name] = max(loads.get(name, 0), size)
    return loads


def needed_by_groups(network: Network) -> list[Mapping[str, Bytes]]:
    """Return, for each group, the bytes that it needs of each network input and constant."""
    computed = {group.output for group in network.groups}
    known: dict[Hashable, tuple[int, ...]] = {}
    found: list[Mapping[str, Bytes]] = []
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in known:
            needs = _Needs(network, group)
            known[kind] = tuple(
                0 if name in computed else needs.elements(name) for name in group.inputs
            )
        sizes = {
            name: elements * network.tensors[name].dtype.itemsize
            for name, elements in zip(group.inputs, known[kind], strict=True)
            if name not in computed
        }
        found.append(sizes)
    return found


class _Needs:
    """Counts from below the elements that a group's output depends on.

    What single positions along one axis of the output read of a tensor is an interval along each of
    the tensor's axes. Where each of these follows one axis of the output, and no two the same one,
    the elements read by all single elements of the output are the product of the intervals'
    unions: rows that a stride skips are not among them. Otherwise only what one element reads is
    counted. A view that keeps the number of elements (a Reshape) needs as many of its input as are
    needed of its output.
    """

    def __init__(self, network: Network, group: Group) -> None:
        self._network = network
        self._group = group
        box = whole(network.tensors[group.output].shape)
        self._regions = group_regions(network, group, box)
        self._slices = [
            [
                group_regions(network, group, (*box[:axis], (i, i + 1), *box[axis + 1 :]))
                for i in range(*box[axis])
            ]
            for axis in range(len(box))
        ]

    def elements(self, name: str) -> int:
        """Return a lower bound on the needed elements of a tensor."""
        if name not in self._regions:
            return 0
        seen_as = self._reshaped(name)
        if seen_as is not None:
            return self.elements(seen_as)
        region = self._regions[name]
        drivers = [self._drivers(name, axis, region[axis]) for axis in range(len(region))]
        followed = [axis for axes in drivers for axis in axes]
        if len(followed) > len(set(followed)) or any(len(axes) > 1 for axes in drivers):
            first: Box = tuple((0, 1) for _ in self._slices)
            one = group_regions(self._network, self._group, first).get(name)
            return 0 if one is None else volume(one)
        return prod(
            self._union(name, axis, axes[0]) if axes else region[axis][1] - region[axis][0]
            for axis, axes in enumerate(drivers)
        )

    def _reshaped(self, name: str) -> str | None:
        """Return the reshaped view through which alone a group reads a tensor; ``None`` if none."""
        readers = [operator for operator in self._group.operators if name in operator.inputs]
        if len(readers) != 1 or family_of(readers[0].kind).fusion is not Fusion.VIEW:
            return None
        shape = self._network.tensors[readers[0].output].shape
        same = prod(shape) == prod(self._network.tensors[name].shape)
        return readers[0].output if same else None

    def _drivers(self, name: str, axis: int, interval: Interval) -> list[int]:
        """Return the output's axes on which the interval read along a tensor's axis depends."""
        return [
            number
            for number, slices in enumerate(self._slices)
            if any(name not in regions or regions[name][axis] != interval for regions in slices)
        ]

    def _union(self, name: str, axis: int, driver: int) -> int:
        """Return how many positions along an axis of a tensor are read by any slice."""
        slices = self._slices[driver]
        intervals = sorted({regions[name][axis] for regions in slices if name in regions})
        positions, end = 0, 0
        for start, stop in intervals:
            positions += max(0, stop - max(start, end))
            end = max(end, stop)
        return positions


MARGIN = 1e-9
"""Relative margin by which bounds are lowered, against rounding in floating point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRoofline:
    """The bound of one group alone.

    ``compute`` is the cycles of its arithmetic on all cores together, with the best use of the
    arrays; ``dram`` those of its weights and network inputs from DRAM, and of a network output to
    it.
    """

    name: str
    macs: int
    compute: float
    dram: float

    @property
    def bound_by(self) -> str:
        """``compute`` or ``dram``, whichever takes longer."""
        return "compute" if self.compute >= self.dram else "dram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The bound of a network on a machine.

    ``compute`` and ``dram`` are cycles, before rounding up; ``loads`` and ``stores`` compulsory
    bytes from DRAM and to it. In a stream of inferences constants may stay: ``stream_dram`` are the
    cycles of inputs, outputs, and of constants as far as they have no room on the chip.
    """

    compute: float
    dram: float
    stream_dram: float
    loads: Bytes
    stores: Bytes
    groups: tuple[GroupRoofline, ...]

    @property
    def cycles(self) -> Cycles:
        """A lower bound on the makespan of every plan of every tiling."""
        return ceil(max(self.compute, self.dram) * (1 - MARGIN))

    @property
    def period(self) -> Cycles:
        """A lower bound on the period of every stream of inferences of every tiling.

        In each period the cores do the arithmetic of one inference, and DRAM its traffic.
        """
        return max(1, ceil(max(self.compute, self.stream_dram) * (1 - MARGIN)))

    @property
    def bound_by(self) -> str:
        """``compute`` or ``dram``, whichever takes longer."""
        return "compute" if self.compute >= self.dram else "dram"


def roofline(network: Network, machine: Machine) -> Roofline:
    """Return a lower bound on the makespan that holds for every tiling of a network.

    *Arithmetic.* A tile whose loop ``l`` makes ``t`` trips on an array that spreads ``l`` over
    ``s`` multipliers takes ``ceil(t / s)`` steps for it, and as many steps in all as their product
    says. A group's tiles are a grid: no two loops follow one axis, and along each axis the trips of
    the tiles add up to those of the group, or more. The steps of a grid are the product of the sums
    along its axes, and ``sum ceil(t / s) >= ceil(T / s)`` for the ``T`` trips of the group: what
    lies over the array's edge is lost at least once. (Tiles that cut through the groups of a
    grouped convolution are no such grid of its groups and channels; for these two loops together
    ``ceil(t / s) >= max(t / s, 1) >= t / min(s, T)``, with T the most trips of any tile.) Each
    group has a launch and its vector work besides. So where all kinds of core that can run a group
    are alike in lanes and in their one array, its tiles take at least ``c[g]`` core cycles
    together. Of several arrays each tile takes the best, and only the rate of the fastest counts.

    Where they are not, only ``ceil(t / s) >= t / min(s, T)`` holds for each tile on each kind, and
    ``c[g, k]``, the group's MACs divided by the product of ``min(s, T)`` for the arrays of kind
    ``k``, is in proportion to the part of the group that the kind computes. Let
    ``x[g, k]`` be the share of group ``g`` that kind ``k`` computes and ``n[k]`` its cores: every
    plan has ``sum_g x[g, k] c[g, k] <= n[k] T`` for each kind. For any prices ``y[k] >= 0``
    with ``sum_k n[k] y[k] = 1``, adding these up gives
    ``T >= sum_g sum_k x[g, k] y[k] c[g, k] >= sum_g min_k y[k] c[g, k]`` (weak duality). The
    largest value over some natural prices is taken.

    *Traffic.* DRAM sends at least :func:`compulsory_bytes` over links whose rates are never
    exceeded, nor what whole transfers can use of them (:mod:`spmilp.machine.routes`), and takes the
    outputs over others, or over the same ones where its ports read and write in turn. Raises a
    ``SpmilpError`` if no kind of core can run a group.
    """
    bound, groups, of_groups = _Arithmetic(network, machine), [], needed_by_groups(network)
    outgoing, incoming = (dram_rate(machine, outgoing=out) for out in (True, False))
    shared = shared_dram_rate(machine)

    def dram_cycles(loads: Bytes, stores: Bytes) -> float:
        return max(loads / outgoing, stores / incoming, (loads + stores) / shared)

    for group, needed in zip(network.groups, of_groups, strict=True):
        loads = sum(needed.values())
        stores = network.tensors[group.output].bytes if group.output in network.outputs else 0
        groups.append(
            GroupRoofline(
                name=group.name,
                macs=bound.macs[group.index],
                compute=bound.of([group.index]),
                dram=dram_cycles(loads, stores),
            )
        )
    loads, stores = compulsory_bytes(network, of_groups)
    inputs = sum(size for name, size in _loads(of_groups).items() if name in network.inputs)
    room = bytes_on_chip(machine)
    again = 0 if room is None else max(0, loads - inputs - room)
    return Roofline(
        compute=bound.of(range(len(network.groups))),
        dram=dram_cycles(loads, stores),
        stream_dram=dram_cycles(inputs + again, stores),
        loads=loads,
        stores=stores,
        groups=tuple(groups),
    )


class _Arithmetic:
    """The bound on arithmetic for any set of groups."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self.macs: list[int] = []
        self._cycles: list[dict[int, float]] = []
        self._cores = [0] * len(machine.kinds)
        for core in machine.cores:
            self._cores[core.kind] += 1
        present = [kind for kind in machine.kinds if self._cores[kind.index] > 0]
        for group in network.groups:
            work = group_work(network, group, whole(network.tensors[group.output].shape))
            self.macs.append(work.macs)
            self._cycles.append(_core_cycles(group, work, present))
        self._prices = list(self._natural_prices())

    def of(self, groups: Sequence[int]) -> float:
        """Return the bound in cycles for some groups."""
        return max(
            sum(
                min(price[kind] * cycles for kind, cycles in self._cycles[group].items())
                for group in groups
            )
            for price in self._prices
        )

    def _natural_prices(self) -> Iterator[list[float]]:
        """Yield dual prices: equal ones for each set of able kinds, and each group's speeds."""
        yield self._normalised([1.0] * len(self._cores))
        seen = set()
        for cycles in self._cycles:
            able = frozenset(cycles)
            speeds = tuple(sorted((kind, 1 / each) for kind, each in cycles.items() if each > 0))
            for prices in ((able, dict.fromkeys(able, 1.0)), (speeds, dict(speeds))):
                key, values = prices
                if key and key not in seen:
                    seen.add(key)
                    yield self._normalised(
                        [values.get(kind, 0.0) for kind in range(len(self._cores))]
                    )

    def _normalised(self, prices: list[float]) -> list[float]:
        total = sum(count * price for count, price in zip(self._cores, prices, strict=True))
        return [price / total for price in prices]


def _core_cycles(group: Group, work: Work, kinds: Sequence[CoreKind]) -> dict[int, float]:
    """Return the least core cycles of a group on each kind that can run it.

    Raises a ``SpmilpError`` if none can.
    """
    able = [kind for kind in kinds if can_run(kind, group) and _macs_per_cycle(work, kind) > 0]
    if not able:
        raise cannot_run(group, work.dtype, kinds)
    if len({(kind.arrays, kind.lanes) for kind in able}) == 1:
        each = min(kind.launch for kind in able) + _least_cycles(work, able[0])
        return {kind.index: each for kind in able}
    return {kind.index: work.macs / _macs_per_cycle(work, kind) for kind in able}


def _least_cycles(work: Work, kind: CoreKind) -> float:
    """Return the least cycles of all tiles' MACs and vector work together, launches left aside."""
    lanes = lanes_of(kind, work.dtype)
    vector = work.vector / lanes if lanes else 0.0
    if not work.loops:
        return vector
    arrays = [dict(array.unroll) for array in kind.arrays if array.dtype == work.dtype]
    if len(arrays) == 1:
        return vector + _least_steps(work, arrays[0])
    # Of several arrays each tile takes the one that has the least to lose at its edges.
    return vector + work.macs / _macs_per_cycle(work, kind)


def _least_steps(work: Work, sizes: Mapping[str, int]) -> float:
    trips = dict(work.loops)
    steps = 1.0
    if trips.get("G", 1) > 1:
        most = _most_trips(work)
        for loop in {"G", "K"} & set(trips):
            steps *= trips.pop(loop) / min(sizes.get(loop, 1), most[loop])
    return steps * prod(-(-trip // sizes.get(loop, 1)) for loop, trip in trips.items())


def _macs_per_cycle(work: Work, kind: CoreKind) -> float:
    """Return the MACs per cycle of the best array; of the lanes where no array has the type."""
    if not work.loops:
        return 1.0
    trips = _most_trips(work)
    arrays = [dict(array.unroll) for array in kind.arrays if array.dtype == work.dtype]
    if not arrays:
        return float(lanes_of(kind, work.dtype))
    return max(
        float(prod(min(sizes.get(loop, 1), trip) for loop, trip in trips.items()))
        for sizes in arrays
    )


def _most_trips(work: Work) -> dict[str, int]:
    """Return the most trips that each loop makes in any tile, from the work of the whole group.

    They are the group's own, but for the loop over groups of a grouped convolution: a tile that
    cuts through groups counts its channels as groups of one.
    """
    trips = dict(work.loops)
    if trips.get("G", 1) > 1:
        trips["G"] *= trips.get("K", 1)
    return trips
