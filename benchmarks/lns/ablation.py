"""What each part of the large-neighbourhood search buys on whole networks.

Usage: python -m benchmarks.lns.ablation [ROW ...] [--limit SECONDS] [--only COLUMN ...]

A row is MODEL@MACHINE, or a problem file, as ``spmilp bench --keep-problems`` leaves them.

For each network the makespan of the list scheduler, then of the search with ever more of its parts,
each from the beginning and with the same limit of processor time; one worker. ``all`` is the search
as it is.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any

from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.neighbourhoods import Neighbourhood
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.solver import LnsSolver

MODELS = Path(__file__).parents[2] / "models"
ROWS = (
    "resnet8_int8@mesh4x4",
    "resnet8_int8@edge16",
    "ds_cnn_int8@epiphany3",
    "gpt2_block_f32@edge16",
    "mobilenetv2_f32@mesh4x4",
    "resnet18_f32@edge16",
)
NO_STEPS: dict[str, Any] = {
    "perturbation": False,
    "advance_loads": False,
    "neighbourhoods": (),
    "reassignment": False,
}
ONE_START: dict[str, Any] = NO_STEPS | {"several_initial_solutions": False}
TIME, CHAINS = Neighbourhood.TIME, Neighbourhood.CHAINS
COLUMNS: dict[str, Solver] = {
    "list": ListScheduler(),
    "justified": LnsSolver(LnsOptions(**ONE_START | {"repacking": False})),
    "repacked": LnsSolver(
        LnsOptions(**ONE_START | {"redundant_transfers": False, "dram_bypass": False})
    ),
    "no redundant transfers": LnsSolver(LnsOptions(**ONE_START | {"dram_bypass": False})),
    "DRAM bypass": LnsSolver(LnsOptions(**ONE_START)),
    "several initial solutions": LnsSolver(LnsOptions(**NO_STEPS)),
    "perturbation": LnsSolver(LnsOptions(**NO_STEPS | {"perturbation": True})),
    "advanced loads": LnsSolver(LnsOptions(**NO_STEPS | {"advance_loads": True})),
    "windows of time": LnsSolver(LnsOptions(**NO_STEPS | {"neighbourhoods": (TIME,)})),
    "and of chains": LnsSolver(LnsOptions(**NO_STEPS | {"neighbourhoods": (TIME, CHAINS)})),
    "windows": LnsSolver(LnsOptions(**NO_STEPS | {"neighbourhoods": tuple(Neighbourhood)})),
    "reassignment": LnsSolver(LnsOptions(**NO_STEPS | {"reassignment": True})),
    "no reassignment": LnsSolver(LnsOptions(reassignment=False)),
    "all": LnsSolver(),
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("rows", nargs="*", default=ROWS)
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds for each")
    parser.add_argument("--only", nargs="*", default=[*COLUMNS], choices=[*COLUMNS])
    given = parser.parse_args()
    print("| network | bound |", " | ".join(given.only), "|")
    print("|---|--:|" + "--:|" * len(given.only))
    for row in given.rows:
        problem = _problem_of(row)
        cells, bound = [], 0
        for name in given.only:
            result = COLUMNS[name].solve(
                problem, SolveOptions(time_limit=given.limit), now=process_time
            )
            bound = max(bound, result.bound)
            plan = result.plan
            is_valid = plan is not None and not check(problem, plan)
            cells.append(f"{plan.claim.makespan:,}" if plan and is_valid else "-")
        print(f"| {Path(row).stem} | {bound:,} |", " | ".join(cells), "|", flush=True)


def _problem_of(row: str) -> Problem:
    if row.endswith(".json"):
        return read_problem(row)
    model, machine = row.split("@")
    return problem_of(model if ":" in model else MODELS / f"{model}.onnx", machine)


if __name__ == "__main__":
    main()
