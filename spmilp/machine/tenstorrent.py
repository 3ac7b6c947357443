"""SoC descriptors of Tenstorrent (``soc_descriptor.yaml`` of tt-umd and tt-metal) as machine files.

A descriptor says which tiles of the grid are what, and how large memories are. Rates, latencies and
alignments it does not say: those are the preset's of the same architecture. Links to hosts and
other chips (``eth``, ``pcie``, ``arc``) move nothing of a plan and are left out.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from spmilp.errors import FileError
from spmilp.formats import converted
from spmilp.units import Count

PRESETS = {"wormhole": "wormhole", "wormhole_b0": "wormhole", "blackhole": "blackhole"}
"""The preset whose rates an architecture has."""

Tile: TypeAlias = Annotated[str, Meta(pattern=r"^\d{1,3}-\d{1,3}$(?!\n)")]
"""``x-y``, in coordinates of the first NoC."""


class Grid(Struct, frozen=True):
    """Tiles of the chip."""

    x_size: Count
    y_size: Count


class SocDescriptor(Struct, frozen=True):
    """The fields of a descriptor that a plan depends on; sizes in bytes, ``dram`` by channel."""

    arch_name: str
    grid: Grid
    functional_workers: Annotated[tuple[Tile, ...], Meta(min_length=1)]
    dram: Annotated[tuple[Annotated[tuple[Tile, ...], Meta(min_length=1)], ...], Meta(min_length=1)]
    worker_l1_size: Count
    dram_bank_size: Count
    harvested_workers: tuple[Tile, ...] = ()


def is_soc_descriptor(content: Mapping[str, object]) -> bool:
    """Say whether a YAML file is a descriptor rather than a machine file."""
    return "arch_name" in content or {"functional_workers", "grid"} <= content.keys()


def preset_of(content: Mapping[str, object], origin: str) -> str:
    """Return the preset that has the rates of a descriptor's architecture."""
    architecture = str(content.get("arch_name", "")).lower()
    if architecture not in PRESETS:
        raise FileError(
            f"{origin}: arch_name: got {architecture!r}; rates are known of {', '.join(PRESETS)}. "
            "Of another chip write a machine file, which also says: topology.rate_bytes_per_cycle, "
            "topology.latency_cycles, core_kinds (arrays and lanes), scratchpads.dma.setup_cycles "
            "and dram.rate_bytes_per_cycle"
        )
    return PRESETS[architecture]


def machine_of_descriptor(
    content: Mapping[str, object], preset: dict[str, Any], origin: str
) -> dict[str, Any]:
    """Return the fields of a preset's file, changed to a descriptor's tiles and sizes.

    Raises a ``ValueError`` if a field is missing, of another type, or contradicts another one.
    """
    given = converted(content, SocDescriptor)
    workers = sorted(set(given.functional_workers) - set(given.harvested_workers))
    if not workers:
        raise ValueError("functional_workers: all are harvested_workers; expected 1 or more")
    (spm,), (dram,) = preset["scratchpads"], preset["dram"]
    tiles = {tile for channel in given.dram for tile in channel}
    usual = (site.removeprefix("r_").replace("_", "-") for site in dram["sites"])
    # Each channel has several tiles; the preset has those at which workers reach it.
    ports = [tile for tile in usual if tile in tiles] or [channel[0] for channel in given.dram]
    preset["name"] = Path(origin).stem or given.arch_name.lower()
    preset["description"] = f"{given.arch_name} by its SoC descriptor; rates of spmilp's preset."
    preset["topology"] |= {"columns": given.grid.x_size, "rows": given.grid.y_size}
    spm["sites"] = _sites("functional_workers", workers, given.grid)
    del spm["size_kib"]
    spm["size_bytes"] = given.worker_l1_size
    dram["sites"] = _sites("dram", ports, given.grid)
    dram["size_bytes"] = len(given.dram) * given.dram_bank_size
    reserved = max(end for _, end in spm["reserved_byte_ranges"])
    if reserved >= given.worker_l1_size:
        raise ValueError(
            f"worker_l1_size: {given.worker_l1_size} B, of which the software of the chip takes "
            f"{reserved} B; expected more"
        )
    fields = ["topology.columns", "topology.rows", "scratchpads.*.size_bytes", "dram.*.size_bytes"]
    preset["provenance"].insert(0, {"fields": fields, "source": "The SoC descriptor."})
    return preset


def _sites(field: str, tiles: Iterable[str], grid: Grid) -> list[str]:
    sites = []
    for tile in tiles:
        x, y = map(int, tile.split("-"))
        if x >= grid.x_size or y >= grid.y_size:
            raise ValueError(
                f"{field}: tile {tile} is outside of the grid of {grid.x_size} x {grid.y_size}; "
                "give the descriptor in coordinates of NoC 0"
            )
        sites.append(f"r_{x}_{y}")
    return sites
