"""Operators, fused groups, tiles and roofline of a model as plain data; nothing is solved."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass

from spmilp import quantities
from spmilp.bounds.roofline import GroupRoofline, roofline
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length
from spmilp.lowering.tiling import Tiling, tile_grid
from spmilp.machine.machine import Machine
from spmilp.units import Bytes, Cycles, Extents


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """One fused group: its ONNX operators, bytes, tasks, and lower bounds for it alone.

    ``reads`` leaves constants aside. It becomes ``tiles`` tasks, ``tiling`` says how many along
    each axis. ``compute_cycles`` are of its MACs on all cores that can run it, ``dram_cycles`` of
    what it must bring from DRAM and store there; the larger one bounds it.
    """

    name: str
    operators: tuple[str, ...]
    output_shape: Extents
    macs: int
    reads: Bytes
    constants: Bytes
    writes: Bytes
    tiles: int
    tiling: str
    compute_cycles: float
    dram_cycles: float
    bound_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A network on a machine before anything is solved.

    ``operators`` counts each ONNX type after clean-up, ``parameters`` are bytes of constants,
    ``intermediates`` bytes between groups. No tiling has a makespan below ``roofline_cycles``,
    which ``bound_by`` sets.
    """

    network: str
    machine: str
    operators: Mapping[str, int]
    inputs: Mapping[str, Extents]
    outputs: Mapping[str, Extents]
    macs: int
    parameters: Bytes
    intermediates: Bytes
    compulsory_dram_traffic: Bytes
    roofline_cycles: Cycles
    compute_cycles: float
    dram_cycles: float
    bound_by: str
    groups: tuple[GroupFigures, ...]

    def data(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return asdict(self)

    def figures(self) -> list[tuple[str, str]]:
        """Return the figures of the whole network as rows."""
        operators = ", ".join(f"{number} {kind}" for kind, number in self.operators.items())
        tiles = quantities.count(sum(group.tiles for group in self.groups), "tile")
        return [
            ("inputs", _shapes(self.inputs)),
            ("outputs", _shapes(self.outputs)),
            ("operators", operators),
            ("groups", f"{quantities.count(len(self.groups), 'fused group')} in {tiles}"),
            ("work", f"{self.macs:,} MAC"),
            ("parameters", quantities.size(self.parameters)),
            ("intermediates", quantities.size(self.intermediates)),
            ("DRAM traffic", f"{quantities.size(self.compulsory_dram_traffic)} at least"),
            (
                "roofline",
                f"{self.roofline_cycles:,} cycles at least for any tiling: compute "
                f"{self.compute_cycles:,.0f}, dram {self.dram_cycles:,.0f}",
            ),
        ]

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for each group, with the columns of :data:`HEADINGS`."""
        return [
            (
                group.name,
                " ".join(group.operators),
                "x".join(map(str, group.output_shape)),
                f"{group.macs:,}",
                quantities.size(group.reads),
                quantities.size(group.constants),
                quantities.size(group.writes),
                group.tiling,
                f"{group.tiles:,}",
                f"{max(group.compute_cycles, group.dram_cycles):,.0f}",
                group.bound_by,
            )
            for group in self.groups
        ]


HEADINGS = (
    *("group", "operators", "output", "MAC", "reads", "constants", "writes"),
    *("tiling", "tiles", "cycles ≥", "bound by"),
)
"""Headings of the table of groups."""


def _shapes(tensors: Mapping[str, Extents]) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in tensors.items())


def inspect_network(
    network: Network, machine: Machine, tilings: Mapping[int, Tiling]
) -> Inspection:
    """Return the figures of a network that is to be tiled as ``tilings`` says.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group.
    """
    line = roofline(network, machine)
    operators = Counter(each.kind for group in network.groups for each in group.operators)
    computed = {group.output for group in network.groups}
    read = {name for group in network.groups for name in group.inputs}
    constants = read - computed - set(network.inputs)
    return Inspection(
        network=network.name,
        machine=machine.name,
        operators=dict(sorted(operators.items())),
        inputs={name: network.tensors[name].shape for name in network.inputs},
        outputs={name: network.tensors[name].shape for name in network.outputs},
        macs=sum(group.macs for group in line.groups),
        parameters=_bytes(network, constants),
        intermediates=_bytes(network, computed - set(network.outputs)),
        compulsory_dram_traffic=line.loads + line.stores,
        roofline_cycles=line.cycles,
        compute_cycles=line.compute,
        dram_cycles=line.dram,
        bound_by=line.bound_by,
        groups=tuple(
            _figures(network, group, tilings[group.index], of_group, constants)
            for group, of_group in zip(network.groups, line.groups, strict=True)
        ),
    )


def _figures(
    network: Network, group: Group, tiling: Tiling, line: GroupRoofline, constants: Set[str]
) -> GroupFigures:
    shape = network.tensors[group.output].shape
    grid = tile_grid(tiling, shape, reduction_length(network, group))
    read = set(group.inputs)
    return GroupFigures(
        name=group.name,
        operators=tuple(operator.kind for operator in group.operators),
        output_shape=shape,
        macs=line.macs,
        reads=_bytes(network, read - constants),
        constants=_bytes(network, read & constants),
        writes=network.tensors[group.output].bytes,
        tiles=grid.tiles * len(grid.parts),
        tiling=tiling.describe(),
        compute_cycles=line.compute,
        dram_cycles=line.dram,
        bound_by=line.bound_by,
    )


def _bytes(network: Network, names: Set[str]) -> Bytes:
    return sum(network.tensors[name].bytes for name in names)
