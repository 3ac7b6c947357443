"""TVM: how busy VDLA's multipliers are with and without latency hiding."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.frontend.graph import Group, Network
from spmilp.machine.read import MachineFile, load_machine
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine

MODEL = Path(__file__).parents[2] / "models" / "resnet18_f32.onnx"
SOLVERS = ("tvm:serial", "tvm", "list")
RATES = (8, 16)
"""Bytes per cycle of DRAM, each way."""

RATE_IS_OURS = "the rate of DRAM is not stated there, nor the tiles"


def measure(data: Path) -> Iterator[Row]:
    """Measure the convolutions of ResNet-18, each by itself."""
    for rate in RATES:
        machine = load_machine("vdla")
        if rate != 8:
            machine = machine.replace(dram_rate=rate)
        found = [_cycles(network, machine) for network in convolutions()]
        ideal = [cycles["ideal"] for cycles in found]
        where = f"DRAM {rate} B/cycle"
        for solver in SOLVERS:
            shares = [all_["ideal"] / all_[solver] for all_ in found]
            total = sum(ideal) / sum(all_[solver] for all_ in found)
            published = {"tvm:serial": "70 %", "tvm": "88 %"}.get(solver, "none")
            yield Row(
                quantity=f"utilisation of multipliers, `{solver}`, {where}",
                published=published,
                ours=f"{total:.0%} together; layers {min(shares):.0%} to {max(shares):.0%}".replace(
                    "%", " %"
                ),
                reason=RATE_IS_OURS if published != "none" else "",
            )


def convolutions() -> Iterator[Network]:
    """Yield the different convolutions of ResNet-18 in int8, without the first.

    TVM leaves the first to the processor: it has 3 input channels for 16 rows of multipliers.
    """
    network, _ = load(MODEL, "vdla")
    seen = set()
    for group in network.groups:
        operator = group.operators[group.anchor]
        if operator.kind != "Conv":
            continue
        names = (*operator.inputs[:2], operator.output)
        tensors = {
            name: replace(network.tensors[name], dtype=np.dtype(np.int8), data=None)
            for name in names
        }
        shapes = tuple(tensor.shape for tensor in tensors.values())
        if shapes in seen or shapes[0][1] < 16:
            continue
        seen.add(shapes)
        alone = Group(
            index=0,
            name=group.name,
            operators=(replace(operator, inputs=names[:2]),),
            anchor=0,
            inputs=names[:2],
            output=names[2],
        )
        yield Network(
            name=f"convolution {len(seen)}",
            tensors=tensors,
            groups=(alone,),
            inputs=names[:1],
            outputs=names[2:],
            sha256=network.sha256,
        )


def _cycles(network: Network, machine: MachineFile) -> dict[str, float]:
    """Return makespans by solver, and the cycles of the multiplications alone."""
    problem = choose_tiles(NetworkOnMachine.of(network, machine)).problem
    _, weights, result = network.tensors.values()
    found: dict[str, float] = {"ideal": prod(result.shape) * prod(weights.shape[1:]) / 256}
    for solver in SOLVERS:
        answer = find_solver(solver).solve(problem, SolveOptions())
        if answer.plan is None or check(problem, answer.plan):
            raise SystemExit(f"{solver} on {problem.name}: no plan that passes the checker")
        found[solver] = answer.plan.claim.makespan
    return found


SOURCE = Source(
    title="TVM",
    citation=(
        "T. Chen et al., OSDI 2018, arXiv 1802.04799: peak utilisation on layers of ResNet on "
        "VDLA, 70 % without latency hiding and 88 % with it."
    ),
    setting=(
        "The different convolutions of ResNet-18 but the first, in int8, each by itself with the "
        "first choice of tile sizes, on `vdla`: 256 multipliers. 100 % is one product in each of "
        "them in every cycle; without hiding everything happens one after another. `list` is this "
        "project's list scheduler, which keeps in the scratchpad what is read again."
    ),
    rows=measure,
)
