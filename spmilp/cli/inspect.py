"""``spmilp inspect``: what the front end and the tiling make of a model."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from spmilp import amounts
from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.cli import output as out
from spmilp.cli.stacked import print_stacked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spmilp.report.inspection import Inspection
    from spmilp.units import Extents


def inspect(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL.onnx",
            help="An ONNX model, or onnx:NAME for a graph of the onnx package.",
            show_default=False,
        ),
    ],
    machine: Annotated[
        str,
        typer.Option(
            "--machine", "-m", metavar="NAME|FILE.yaml", help="A preset or a machine file."
        ),
    ] = "mesh4x4",
    dim: arguments.Dim = None,
    passes: arguments.Passes = "",
    as_json: arguments.AsJson = False,
) -> None:
    """Show operators, work, bytes, fused groups, tiles, and what bounds them; nothing is solved."""
    from dataclasses import asdict

    from spmilp.report.inspection import inspect_network
    from spmilp.source import load
    from spmilp.tile_selection.first_choice import choose_tilings

    network, target = load(model, machine, dim=read.dimensions(dim or ()), passes=passes)
    tilings = choose_tilings(network, target.machine)
    found = inspect_network(network, target.machine, tilings)
    if as_json:
        out.print_json(asdict(found))
        return
    to = out.console()
    to.print(f"{found.network} on {found.machine}", markup=False, style="bold")
    to.print(_whole(found))
    to.print()
    _print_groups(to, found)


def _whole(found: "Inspection") -> Table:
    operators = ", ".join(f"{number} {kind}" for kind, number in found.operators.items())
    groups, tiles = len(found.groups), sum(group.tiles for group in found.groups)
    rows = [
        ("inputs", _shapes(found.inputs)),
        ("outputs", _shapes(found.outputs)),
        ("operators", operators),
        ("groups", f"{amounts.count(groups, 'fused group')} in {amounts.count(tiles, 'tile')}"),
        ("work", f"{found.macs:,} MAC"),
        ("parameters", amounts.size(found.parameters)),
        ("intermediates", amounts.size(found.intermediates)),
        ("DRAM traffic", f"{amounts.size(found.compulsory_dram_traffic)} at least"),
        (
            "roofline",
            f"{found.roofline_cycles:,} cycles at least for any tiling: compute "
            f"{found.compute_cycles:,.0f}, dram {found.dram_cycles:,.0f}",
        ),
    ]
    return out.table(("", ""), rows, show_headings=False)


def _print_groups(to: Console, found: "Inspection") -> None:
    rows = [
        (
            group.name,
            " ".join(group.operators),
            "x".join(map(str, group.output_shape)),
            f"{group.macs:,}",
            amounts.size(group.reads),
            amounts.size(group.constants),
            amounts.size(group.writes),
            group.tiling,
            f"{group.tiles:,}",
            f"{max(group.compute_cycles, group.dram_cycles):,.0f}",
            group.bound_by,
        )
        for group in found.groups
    ]
    headings = (
        *("group", "operators", "output", "MAC", "reads", "constants", "writes"),
        *("tiling", "tiles", "cycles ≥", "bound by"),
    )
    print_stacked(to, headings, rows, numbers=range(3, 10))


def _shapes(tensors: "Mapping[str, Extents]") -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in tensors.items())
