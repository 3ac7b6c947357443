"""``spmilp calibrate``: a cost model from measured tiles, or the tiles that are to be measured."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out

if TYPE_CHECKING:
    from spmilp.calibration.fit import Calibration


class Fit(StrEnum):
    """What a cost model makes small."""

    ERROR = "error"
    RANK = "rank"


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
    objective: Annotated[
        Fit, typer.Option(help="Small errors, or few pairs of tiles in the wrong order.")
    ] = Fit.ERROR,
    seed: arguments.Seed = 0,
    as_json: arguments.AsJson = False,
) -> None:
    """Learn a cost model from measured cycles of tiles, for solve --cost-model.

    Prints its error and rank correlation on rows that were held out, beside
    the analytic model's. Of MODEL.onnx it writes the tiles that a search would
    consider, with the analytic model's cycles, to be replaced by measured ones.
    """
    from spmilp.machine.read import load_machine

    if not source.endswith(".csv"):
        _write_tiles(source, machine, arguments.dimensions(dim or ()), output)
        return
    from spmilp.calibration.fit import calibrate as fit
    from spmilp.calibration.measurements import read_measurements
    from spmilp.lowering.learned import write_cost_model

    target = load_machine(machine).machine
    rows, sha256 = read_measurements(source, target)
    found = fit(rows, target, objective=objective.value, seed=seed, measured=sha256)
    write_cost_model(found.model, output)
    _show(found, output, as_json=as_json)


def _write_tiles(model: str, machine: str, dim: dict[str, int], file: Path) -> None:
    from spmilp.calibration.measurements import as_csv, tiles_worth_measuring
    from spmilp.files import write_atomically
    from spmilp.source import load

    network, target = load(model, machine, dim=dim)
    write_atomically(file, as_csv(tiles_worth_measuring(network, target.machine)))
    out.console().print(f"written: {file}", markup=False, soft_wrap=True)


def _show(found: "Calibration", file: Path, *, as_json: bool) -> None:
    families = found.model.families
    if as_json:
        out.print_json(
            {
                "objective": found.model.objective,
                "families": [
                    {
                        "kind": one.kind,
                        "operator": one.operator,
                        "dtype": one.dtype,
                        "rows": one.rows,
                        "error": one.learned.error,
                        "error_by_rule": one.by_rule.error,
                        "rank": one.learned.rank,
                        "rank_by_rule": one.by_rule.rank,
                    }
                    for one in families
                ],
                "left_out": [
                    {"family": list(one.family), "rows": one.rows, "reason": one.reason}
                    for one in found.left_out
                ],
                "files": [str(file)],
            }
        )
        return
    headings = ("family", "rows", "error", "analytic", "rank correlation", "analytic")
    cells = [
        (
            " ".join(one.family),
            f"{one.rows:,}",
            f"{one.learned.error:.1%}",
            f"{one.by_rule.error:.1%}",
            f"{one.learned.rank:.4f}",
            f"{one.by_rule.rank:.4f}",
        )
        for one in families
    ]
    to = out.console()
    to.print("On held-out rows", style="bold")
    to.print(out.table(headings, cells, numbers={1, 2, 3, 4, 5}))
    for left in found.left_out:
        out.print_warning(f"{' '.join(left.family)}: {left.reason}; the analytic model stays")
    to.print(f"written: {file}", markup=False, soft_wrap=True)
