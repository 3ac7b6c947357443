"""Write the family of instances: ``python instances/make_instances.py [FOLDER]``.

The problems are made from the networks in ``models/``; the same files give the same bytes.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, log2
from pathlib import Path

from bare import bare_problems
from family import LOAD, MEMORY, SPECS, Spec
from pieces import piece, tilings
from small_machines import machine_of

from spmilp.frontend.graph import Network
from spmilp.lowering.limits import working_set
from spmilp.lowering.lower import lower
from spmilp.machine.read import MachineFile
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.problem.file import write_problem
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, align_up

FOLDER = Path(__file__).resolve().parent / "problems"
FIRST_SPM: Bytes = 64 * 1024
LINK_RATE = Fraction(8)


def made(specs: Iterable[Spec] = SPECS) -> Iterator[tuple[str, Problem]]:
    """Yield the instances of some specs with their names.

    A name says: piece of a network, tasks, cores and what is special about them, memory, load,
    and the objective if it is not the makespan.
    """
    for spec in specs:
        problem = problem_of(spec)
        yield name_of(spec, problem), problem


def name_of(spec: Spec, problem: Problem) -> str:
    """Return the name of an instance."""
    parts = [spec.name, f"{len(problem.tasks)}t", spec.shape.name, spec.memory, spec.load]
    if spec.objective is not Quantity.MAKESPAN:
        parts.append(spec.objective.value.replace("_", ""))
    return "-".join(parts)


def problem_of(spec: Spec) -> Problem:
    """Return the problem of a spec.

    It is lowered on a machine of a guessed size first, to learn how large the working sets are and
    how much there is to move and to compute.
    """
    guess = machine_of(spec.shape, FIRST_SPM, LINK_RATE, LINK_RATE)
    part = piece(spec.model, *spec.groups, guess.machine)
    first = _lowered(spec, part, guess)
    rate = _dram_rate(first, LOAD[spec.load])
    sized = _lowered(spec, part, machine_of(spec.shape, _spm(first, spec), rate, LINK_RATE))
    again = _lowered(spec, part, machine_of(spec.shape, _spm(sized, spec), rate, LINK_RATE))
    if _largest_working_set(again) > min(m.size or 0 for m in again.machine.spms):
        raise ValueError(f"{spec.name} {spec.cuts}: the tiles grew with the scratchpads")
    return again


def _lowered(spec: Spec, part: Network, target: MachineFile) -> Problem:
    sources = (("model", part.sha256), ("machine", target.sha256))
    cut = tilings(part, spec.cuts)
    objective = Objective.of(spec.objective)
    problem = lower(part, target.machine, cut, objective=objective, sources=sources)
    # The instances are of any kernels: they have no workspace.
    return replace(problem, tasks=tuple(replace(task, scratch=0) for task in problem.tasks))


def _spm(problem: Problem, spec: Spec) -> Bytes:
    wanted = ceil(_largest_working_set(problem) * MEMORY[spec.memory] * spec.shape.share)
    return align_up(wanted, 16)


def _largest_working_set(problem: Problem) -> Bytes:
    alignment = max(memory.alignment for memory in problem.machine.spms)
    return max(
        working_set(task, problem.slices, problem.buffers, alignment) for task in problem.tasks
    )


def _dram_rate(problem: Problem, ratio: float) -> Fraction:
    """Return a power of two near ``ratio`` times what the compulsory traffic needs."""
    cycles = sum(min(c for c in task.cycles if c is not None) for task in problem.tasks)
    needed = compulsory_dram_traffic(problem) * len(problem.machine.cores) / cycles
    return Fraction(2) ** min(6, max(-3, round(log2(needed * ratio))))


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    given = parser.parse_args()
    for name, problem in (*made(), *bare_problems().items()):
        write_problem(problem, given.folder / f"{name}.json")


if __name__ == "__main__":
    main()
