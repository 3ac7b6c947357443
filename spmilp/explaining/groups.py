"""Operators, fused groups, tiles and roofline of a model as plain data; nothing is solved."""

from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

from spmilp.bounds.roofline import GroupRoofline, roofline
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length
from spmilp.lowering.tiling import Tiling, tile_grid
from spmilp.machine.machine import Machine
from spmilp.units import Bytes


def inspect_network(
    network: Network, machine: Machine, tilings: Mapping[int, Tiling]
) -> dict[str, Any]:
    """Return the figures of a network that is to be tiled as ``tilings`` says.

    ``operators`` counts each ONNX type after clean-up, ``parameters`` are bytes of constants,
    ``intermediates`` bytes between groups. No tiling has a makespan below ``roofline_cycles``,
    which ``bound_by`` sets. ``groups`` has a row for each fused group.
    """
    line = roofline(network, machine)
    operators = Counter(each.kind for group in network.groups for each in group.operators)
    computed = {group.output for group in network.groups}
    read = {name for group in network.groups for name in group.inputs}
    constants = read - computed - set(network.inputs)
    return {
        "network": network.name,
        "machine": machine.name,
        "operators": dict(sorted(operators.items())),
        "inputs": {name: network.tensors[name].shape for name in network.inputs},
        "outputs": {name: network.tensors[name].shape for name in network.outputs},
        "macs": sum(group.macs for group in line.groups),
        "parameters": _bytes(network, constants),
        "intermediates": _bytes(network, computed - set(network.outputs)),
        "compulsory_dram_traffic": line.loads + line.stores,
        "roofline_cycles": line.cycles,
        "compute_cycles": line.compute,
        "dram_cycles": line.dram,
        "bound_by": line.bound_by,
        "groups": [
            _figures(network, group, tilings[group.index], of_group, constants)
            for group, of_group in zip(network.groups, line.groups, strict=True)
        ],
    }


def _figures(
    network: Network, group: Group, tiling: Tiling, line: GroupRoofline, constants: Set[str]
) -> dict[str, Any]:
    """Return the figures of one group.

    ``reads`` leaves constants aside. It becomes ``tiles`` tasks, ``tiling`` says how many along
    each axis. ``compute_cycles`` are of its MACs on all cores that can run it, ``dram_cycles`` of
    what it must bring from DRAM and store there; the larger one bounds it.
    """
    shape = network.tensors[group.output].shape
    grid = tile_grid(tiling, shape, reduction_length(network, group))
    read = set(group.inputs)
    return {
        "name": group.name,
        "operators": [operator.kind for operator in group.operators],
        "output_shape": shape,
        "macs": line.macs,
        "reads": _bytes(network, read - constants),
        "constants": _bytes(network, read & constants),
        "writes": network.tensors[group.output].bytes,
        "tiles": grid.cells * len(grid.parts),
        "tiling": tiling.describe(),
        "compute_cycles": line.compute,
        "dram_cycles": line.dram,
        "bound_by": line.bound_by,
    }


def _bytes(network: Network, names: Set[str]) -> Bytes:
    return sum(network.tensors[name].bytes for name in names)
