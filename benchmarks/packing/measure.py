"""What the benchmarks of the packing share: the instances, and one measured, checked call."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from spmilp.packing import Item, Packing, PackingOptions, PackingProblem, check_packing
from spmilp.packing.minimalloc import read_table

CAPACITY = 2**20
"""The capacity in bytes that MiniMalloc's challenging instances are made for."""
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "minimalloc"

Solve = Callable[[PackingProblem, PackingOptions], Packing]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An answer that passed the checker, and the seconds of the call: wall, and of the CPU."""

    packing: Packing
    wall: float
    cpu: float


def challenging(folder: Path) -> dict[str, tuple[Item, ...]]:
    """Return the items of MiniMalloc's instances by name, in order.

    Raises
    ------
    SystemExit
        If the folder holds none.
    """
    files = sorted(folder.glob("*.1048576.csv"))
    if not files:
        raise SystemExit(f"{folder}: no *.1048576.csv of google/minimalloc")
    return {file.name.split(".")[0]: read_table(file).items for file in files}


def measured(solve: Solve, problem: PackingProblem, options: PackingOptions) -> Measured:
    """Call ``pack`` or ``minimise`` and check what it returns.

    Raises
    ------
    SystemExit
        If the offsets break a rule.
    """
    wall, cpu = perf_counter(), process_time()
    packing = solve(problem, options)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    if packing.offsets is not None:
        violations = check_packing(problem, packing.offsets)
        if violations:
            raise SystemExit(f"the offsets are wrong: {violations[0]}")
    return Measured(packing=packing, wall=wall, cpu=cpu)
