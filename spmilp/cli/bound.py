"""``spmilp bound``: what no plan can beat, and which argument says so."""

from typing import Annotated, Any

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.options import with_options


@with_options("dim", "pins", annotation=arguments.of_solve)
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
    *,
    as_json: arguments.AsJson = False,
    **given: Any,
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
    from spmilp.report.answer_table import UNITS
    from spmilp.solvers.common.fit import narrowed

    tiled, origin = pipeline.tiled_problem(source, machine, **given)
    problem, pinned = tiled.problem, narrowed(tiled.problem).problem
    found = [(each, "these") for each in all_bounds(pinned)]
    if origin is not None:
        network, target = origin.network, pinned.machine
        cycles, makespan = roofline(network, target).cycles, Quantity.MAKESPAN
        chains, moved = Chains(network, target).cycles(), traffic_for_any_tiles(network)
        held = peak_for_any_tiles(network, target)
        found += [
            (Bound("roofline", makespan, cycles), "any"),
            (Bound("chains of groups", makespan, chains), "any"),
            (Bound("bytes that groups need", Quantity.DRAM_TRAFFIC, moved), "any"),
            (Bound("smallest tiles", Quantity.PEAK_SPM, held), "any"),
        ]
    best: dict[Quantity, Bound] = {}
    for each, _ in found:
        if each.value > best.setdefault(each.quantity, each).value:
            best[each.quantity] = each
    if as_json:
        out.print_json(
            {
                "problem": problem.name,
                "machine": problem.machine.name,
                "tasks": len(problem.tasks),
                "quantity": str(problem.objective.first),
                "best": {str(quantity): each.name for quantity, each in best.items()},
                "bounds": [
                    {
                        "name": each.name,
                        "quantity": str(each.quantity),
                        "value": each.value,
                        "tiles": tiles,
                    }
                    for each, tiles in found
                ],
            }
        )
        return
    rows = [
        (
            str(each.quantity),
            each.name,
            f"{each.value:,}",
            UNITS[each.quantity],
            tiles,
            "best" if best[each.quantity] is each else "",
        )
        for each, tiles in found
        if each.value > 0
    ]
    to = out.console()
    to.print(f"{problem.name}: no plan has less", markup=False, style="bold")
    to.print(out.table(("quantity", "bound", "value", "", "tiles", ""), rows, numbers=(2,)))
