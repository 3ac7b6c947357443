"""``spmilp bound``: what no plan can beat, and which argument says so."""

from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import options as read
from spmilp.cli import output as out

if TYPE_CHECKING:
    from spmilp.bounds.best import Bound
    from spmilp.problem.problem import Problem


def bound(
    source: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM.json|MODEL.onnx",
            help="A problem file; or a model (onnx:NAME for a graph of the onnx package), whose "
            "tiles are then those that solve would choose.",
            show_default=False,
        ),
    ],
    machine: arguments.Machine = None,
    dim: arguments.Dim = None,
    pins: arguments.Pins = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Print every proven lower bound, and which is best for each quantity.

    For a model also those that hold for every tiling: on the makespan, DRAM traffic and the peak;
    the others hold for its tiles. With pins they are those of plans that keep to them.
    """
    from spmilp import pipeline
    from spmilp.bounds.any_tiles import Chains, peak_for_any_tiles, traffic_for_any_tiles
    from spmilp.bounds.best import Bound, all_bounds
    from spmilp.bounds.roofline import roofline
    from spmilp.problem.objective import Quantity
    from spmilp.solvers.common.narrow import narrowed

    tiled, origin = pipeline.tiled_problem(
        source, machine, dim=read.dimensions(dim or ()), pins=pins
    )
    problem = narrowed(tiled.problem).problem
    bounds = list(all_bounds(problem))
    if origin is not None:
        least = roofline(origin.network, problem.machine).cycles
        bounds.append(Bound(ROOFLINE, Quantity.MAKESPAN, least))
        least = Chains(origin.network, problem.machine).cycles()
        bounds.append(Bound(CHAINS, Quantity.MAKESPAN, least))
        moved = traffic_for_any_tiles(origin.network)
        bounds.append(Bound(NEEDED, Quantity.DRAM_TRAFFIC, moved))
        held = peak_for_any_tiles(origin.network, problem.machine)
        bounds.append(Bound(SMALLEST, Quantity.PEAK_SPM, held))
    _print(tiled.problem, bounds, as_json=as_json)


ROOFLINE = "roofline"
CHAINS = "chains of groups"
NEEDED = "bytes that groups need"
SMALLEST = "smallest tiles"
ANY_TILES = frozenset({ROOFLINE, CHAINS, NEEDED, SMALLEST})
"""The bounds that hold for any tiles; all others hold for those of the problem."""


def _print(problem: "Problem", bounds: "list[Bound]", *, as_json: bool) -> None:
    from spmilp.report.answer_table import UNITS

    best: dict[str, Bound] = {}
    for each in bounds:
        known = best.setdefault(str(each.quantity), each)
        if each.value > known.value:
            best[str(each.quantity)] = each
    if as_json:
        out.print_json(
            {
                "problem": problem.name,
                "machine": problem.machine.name,
                "tasks": len(problem.tasks),
                "quantity": str(problem.objective.first),
                "best": {quantity: each.name for quantity, each in best.items()},
                "bounds": [
                    {
                        "name": each.name,
                        "quantity": str(each.quantity),
                        "value": each.value,
                        "tiles": _tiles(each),
                    }
                    for each in bounds
                ],
            }
        )
        return
    to = out.console()
    to.print(f"{problem.name}: no plan has less", markup=False, style="bold")
    rows = [
        (
            str(each.quantity),
            each.name,
            f"{each.value:,}",
            UNITS[each.quantity],
            _tiles(each),
            "best" if best[str(each.quantity)] is each else "",
        )
        for each in bounds
        if each.value > 0
    ]
    to.print(out.table(("quantity", "bound", "value", "", "tiles", ""), rows, numbers=(2,)))


def _tiles(bound: "Bound") -> str:
    """Return for which tiles a bound holds."""
    return "any" if bound.name in ANY_TILES else "these"
