"""Bytes beyond the compulsory ones in the setting of COSMA, beside an exact COSMA model.

Usage: python -m benchmarks.exact.cosma [TENSORS ...] [--model NAME [--unfused]] [--seconds S]
           [--workers N] [--solvers list,residency,cpsat] [--budgets M_R,M_H,M_P]
           [--reference SECONDS]

One core, one scratchpad, whole tensors, any order of the operators, and the objective is DRAM
traffic: Li, Gupta and Malik, "COSMA", arXiv 2311.18246. Networks are random, each operator reads
one to three of the last tensors, as in the cells that architecture searches find; or, with
``--model``, the activations of an ONNX model with one byte for each element. Budgets are theirs:
M_R, the largest operator with its operands; M_P, the least peak of any order that spills nothing,
found by a search over the sets of operators that have run; and their mean, M_H.

With ``--reference`` COSMA's own model is solved, too.
"""

import argparse
import sys
from collections.abc import Iterator
from time import monotonic

from benchmarks.exact.cosma.networks import model_network, random_network
from benchmarks.exact.cosma.setting import (
    compulsory_bytes,
    largest_operator,
    least_peak,
    problem_of,
    solve,
)
from spmilp.checker.check import check
from spmilp.policies.cosma import Network
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions

HEAD = (
    "| network | operators | budget | bytes | with | status | extra | extra at least | seconds |\n"
    "|---|--:|---|--:|---|---|--:|--:|--:|"
)


def main() -> int:
    """Print a table; fail if the checker refuses a plan."""
    given = _arguments()
    refused = 0
    print(HEAD)
    for network in _networks(given):
        least, peak = largest_operator(network), least_peak(network)
        sizes = {"M_R": least, "M_H": (least + peak) // 2, "M_P": peak}
        for name in given.budgets.split(","):
            budget = sizes[name]
            row = f"| {network.name} | {len(network.operators)} | {name} | {budget:,}"
            for solver in given.solvers.split(","):
                cells, valid = _ours(network, budget, solver, given)
                refused += not valid
                print(f"{row} | {cells} |", flush=True)
            if given.reference:
                print(f"{row} | {_theirs(network, budget, given)} |", flush=True)
    return 1 if refused else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tensors", nargs="*", type=int, default=[20, 30, 40, 50, 60])
    parser.add_argument("--model", help="an ONNX file or onnx:NAME instead of random networks")
    parser.add_argument("--unfused", action="store_true", help="each node is an operator")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--solvers", default="residency,cpsat", help="by name, with commas")
    parser.add_argument("--reference", type=float, metavar="SECONDS", help="for COSMA's model")
    parser.add_argument("--budgets", default="M_R,M_H,M_P")
    return parser.parse_args()


def _networks(given: argparse.Namespace) -> Iterator[Network]:
    if given.model:
        yield model_network(given.model, fused=not given.unfused)
    else:
        yield from (random_network(tensors, seed=tensors) for tensors in given.tensors)


def _ours(
    network: Network, budget: int, solver: str, given: argparse.Namespace
) -> tuple[str, bool]:
    """Return the cells of one of our solvers, and whether the checker has nothing against them."""
    problem = problem_of(network, budget)
    began = monotonic()
    options = SolveOptions(time_limit=given.seconds, workers=given.workers)
    result = find_solver(solver).solve(problem, options)
    seconds = monotonic() - began
    extra, valid = None, True
    if result.plan is not None:
        valid = not check(problem, result.plan)
        extra = result.plan.claim.dram_traffic - compulsory_bytes(network)
    least = result.bound - compulsory_bytes(network)
    return _cells(solver, str(result.status), extra, least, seconds), valid


def _theirs(network: Network, budget: int, given: argparse.Namespace) -> str:
    began = monotonic()
    answer = solve(network, budget, seconds=given.reference, workers=given.workers)
    return _cells("COSMA", answer.status, answer.extra, answer.bound, monotonic() - began)


def _cells(name: str, status: str, extra: int | None, least: int, seconds: float) -> str:
    shown = "-" if extra is None else f"{extra:,}"
    return f"{name} | {status} | {shown} | {least:,} | {seconds:.1f}"


if __name__ == "__main__":
    sys.exit(main())
