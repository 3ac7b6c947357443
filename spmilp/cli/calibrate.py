"""``spmilp calibrate``: a cost model from measured tiles, or the tiles that are to be measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out

if TYPE_CHECKING:
    from spmilp.calibration import LeftOut
    from spmilp.lowering.learned import CostModel


def calibrate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MEASURED.csv|MODEL.onnx",
            help="Cycles of tiles, or a model whose tiles are to be measured.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            dir_okay=False,
            help="The cost model; for MODEL.onnx the CSV file with its tiles.",
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
    seed: arguments.Seed = 0,
    as_json: arguments.AsJson = False,
) -> None:
    """Learn a cost model from measured cycles of tiles, for solve --cost-model.

    Prints its error on rows that were held out, beside the analytic
    model's. Of MODEL.onnx it writes the tiles that a search would consider,
    with the analytic model's cycles, to be replaced by measured ones.
    """
    from spmilp.machine.read import load_machine

    if not source.endswith(".csv"):
        _write_tiles(source, machine, arguments.dimensions(dim or ()), output)
        return
    from spmilp.calibration import calibrate as fit
    from spmilp.calibration import read_measurements
    from spmilp.lowering.learned import write_cost_model

    target = load_machine(machine).machine
    rows, sha256 = read_measurements(source, target)
    model, left_out = fit(rows, target, seed=seed, measured=sha256)
    write_cost_model(model, output)
    _show(model, left_out, output, as_json=as_json)


def _write_tiles(model: str, machine: str, dim: dict[str, int], file: Path) -> None:
    from spmilp.calibration import as_csv, tiles_worth_measuring
    from spmilp.files import write_atomically
    from spmilp.source import load

    network, target = load(model, machine, dim=dim)
    write_atomically(file, as_csv(tiles_worth_measuring(network, target.machine)))
    out.console().print(f"written: {file}", markup=False, soft_wrap=True)


def _show(
    model: "CostModel", left_out: "tuple[LeftOut, ...]", file: Path, *, as_json: bool
) -> None:
    if as_json:
        shown = ("kind", "operator", "dtype", "rows", "error", "error_by_rule")
        out.print_json(
            {
                "families": [
                    {name: getattr(one, name) for name in shown} for one in model.families
                ],
                "left_out": [
                    {"family": list(one.family), "rows": one.rows, "reason": one.reason}
                    for one in left_out
                ],
                "files": [str(file)],
            }
        )
        return
    cells = [
        (" ".join(one.family), f"{one.rows:,}", f"{one.error:.1%}", f"{one.error_by_rule:.1%}")
        for one in model.families
    ]
    to = out.console()
    to.print("On held-out rows", style="bold")
    to.print(out.table(("family", "rows", "error", "analytic"), cells, numbers={1, 2, 3}))
    for left in left_out:
        out.print_warning(f"{' '.join(left.family)}: {left.reason}; the analytic model stays")
    to.print(f"written: {file}", markup=False, soft_wrap=True)
