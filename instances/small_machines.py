"""Small machines of many shapes, as the YAML files that the package reads."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spmilp.machine.read import MachineFile, read_machine
from spmilp.units import Bytes

CORE = {
    "arrays": [
        {"dtype": "int8", "K": 8, "C": 8},
        {"dtype": "float32", "K": 4, "C": 4},
    ],
    "lanes": {"int8": 16, "float32": 8},
    "launch_cycles": 20,
    "mac_energy_fj": {"int8": 300, "float32": 4600},
}
VECTOR = {
    "arrays": [{"dtype": "int8", "K": 16}, {"dtype": "float32", "K": 8}],
    "lanes": {"int8": 64, "float32": 32},
    "launch_cycles": 10,
    "mac_energy_fj": {"int8": 400, "float32": 5000},
}
MATRIX_ONLY = ["Conv", "Gemm", "MatMul", "Add", "Mul", "Clip", "Relu"]
"""Operators of a matrix core that leaves pooling, softmax and normalisation to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a machine looks like, its memory sizes and DRAM rate apart.

    Parameters
    ----------
    topology
        ``bus``, ``crossbar``, ``ring`` or ``mesh 2x3``.
    cores
        In all.
    share
        Cores that share one scratchpad.
    links
        Whether engines move data from scratchpad to scratchpad; if not, only from and to DRAM.
    remote
        Whether cores read operands in other scratchpads.
    multicast
        Whether an engine at the DRAM loads into several scratchpads at once.
    staged
        Whether data stops in a shared memory on its way from and to DRAM.
    vector
        How many of the cores are vector cores; the others then run no softmax and the like.
    """

    topology: str
    cores: int
    share: int = 1
    links: bool = True
    remote: bool = False
    multicast: bool = False
    staged: bool = False
    vector: int = 0
    channels: int = 2
    alignment: Bytes = 16

    @property
    def name(self) -> str:
        """What file names call it."""
        parts = [f"{self.cores}c"]
        if self.cores > 1:
            parts.append(self.topology.replace(" ", ""))
        if self.share > 1:
            parts.append(f"shared{self.share}")
        if self.cores > self.share and not self.links:
            parts.append("nolinks")
        parts += (w for w in ("remote", "multicast", "staged") if getattr(self, w))
        if self.vector:
            parts.append("vector")
        return "-".join(parts)


def machine_of(shape: Shape, spm: Bytes, dram_rate: Fraction, link_rate: Fraction) -> MachineFile:
    """Return the machine of a shape with scratchpads of ``spm`` bytes; rates in bytes per cycle."""
    text = json.dumps(_description(shape, spm, dram_rate, link_rate))
    return read_machine(text.encode(), shape.name)


def _description(
    shape: Shape, spm: Bytes, dram_rate: Fraction, link_rate: Fraction
) -> dict[str, Any]:
    topology, port = _topology(shape, str(link_rate))
    above = "l2" if shape.staged else "dram"
    engine = {
        "reaches": [above, "spm*"] if shape.links else [above],
        "channels": shape.channels,
        "setup_cycles": 12,
        "pipelined": shape.topology != "bus",
        "rate_bytes_per_cycle": str(link_rate),
    }
    made: dict[str, Any] = {
        "name": shape.name,
        "topology": topology,
        "core_kinds": {"core": CORE},
        "scratchpads": _scratchpads(shape, spm, engine),
        "dram": [
            {
                "sites": [port],
                "rate_bytes_per_cycle": str(dram_rate),
                "latency_cycles": 20,
                "alignment_bytes": shape.alignment,
                "energy_fj_per_byte": 125000,
            }
        ],
    }
    if shape.vector:
        made["core_kinds"] = {"core": CORE | {"operators": MATRIX_ONLY}, "vector": VECTOR}
    if shape.staged:
        top = {"name": "top", "reaches": ["dram"], "channels": 2, "setup_cycles": 30}
        made["shared"] = [
            {
                "name": "l2",
                "sites": [port],
                "size_bytes": 4 * spm * shape.cores,
                "alignment_bytes": shape.alignment,
                "energy_fj_per_byte": 9000,
                "dma": [top | {"rate_bytes_per_cycle": str(dram_rate)}],
            }
        ]
    if shape.multicast:
        made["engines"] = [
            {
                "name": "caster",
                "reaches": ["dram", "spm*"],
                "setup_cycles": 16,
                "rate_bytes_per_cycle": str(link_rate),
                "multicast": True,
            }
        ]
    if shape.remote:
        made["remote_reads"] = {"cycles_per_byte_hop": "1/16"}
    return made


def _topology(shape: Shape, rate: str) -> tuple[dict[str, Any], str]:
    """Return the topology and the site of the DRAM."""
    link = {"rate_bytes_per_cycle": rate, "latency_cycles": 2, "energy_fj_per_byte": 800}
    kind, _, size = shape.topology.partition(" ")
    if kind == "mesh":
        columns, rows = map(int, size.split("x"))
        return {"type": "mesh", "columns": columns, "rows": rows, **link}, "r_0_0"
    if kind == "ring":
        return {"type": "ring", "routers": shape.cores // shape.share, **link}, "r_0"
    return {"type": kind, **link}, {"bus": "bus", "crossbar": "xbar"}[kind]


def _scratchpads(shape: Shape, spm: Bytes, engine: dict[str, Any]) -> list[dict[str, Any]]:
    common = {
        "size_bytes": spm,
        "alignment_bytes": shape.alignment,
        "energy_fj_per_byte": 1500,
        "dma": [engine],
    }
    one_site = shape.topology in ("bus", "crossbar")
    matrix = (shape.cores - shape.vector) // shape.share
    found = [{"cores": {"core": shape.share}, "count": matrix if one_site else 1, **common}]
    if shape.vector:
        found.append({"name": "spmv", "cores": {"vector": 1}, "count": shape.vector, **common})
    return found
