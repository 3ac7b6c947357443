"""Bytes beyond the compulsory ones, in the setting of COSMA, with CP-SAT.

Usage: python -m benchmarks.exact.cosma [--seconds S] [--workers N] [TENSORS ...]

One core, one scratchpad, whole tensors, any order of the operators, and the objective is DRAM
traffic: Li, Gupta and Malik, "COSMA", arXiv 2311.18246. Networks are random: each operator reads
one to three of the last tensors, as in the cells that architecture searches find. Budgets are
theirs: M_R, the largest operator with its operands; M_P, the least peak of any order that spills
nothing, found here by dynamic programming over the sets of operators that have run; and their mean.
"""

import argparse
import sys
from fractions import Fraction
from heapq import heappop, heappush
from random import Random
from time import monotonic

from spmilp.checker.check import check
from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.cpsat.solver import CpSatSolver

WINDOW = 4


def network(tensors: int, seed: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return the sizes of all tensors in bytes, and what the operator of each but one reads."""
    random = Random(seed)
    sizes = [16 * random.randint(8, 64) for _ in range(tensors)]
    reads: list[tuple[int, ...]] = []
    unread = {0}
    for tensor in range(1, tensors):
        recent = range(max(0, tensor - WINDOW), tensor)
        some = set(random.sample(recent, min(len(recent), random.choice([1, 2, 2, 3]))))
        if unread and min(unread) <= tensor - WINDOW:
            some.add(min(unread))
        unread -= some
        unread.add(tensor)
        reads.append(tuple(sorted(some)))
    return sizes, reads


def problem_of(sizes: list[int], reads: list[tuple[int, ...]], budget: int) -> Problem:
    """Return the problem on one core with a scratchpad of ``budget`` bytes."""
    last = len(sizes) - 1
    read = {tensor for some in reads for tensor in some}
    outside = [t for t in range(len(sizes)) if t in (0, last) or t not in read]
    tensors = tuple(
        DramTensor(
            index=index,
            name=f"t{tensor}",
            kind=BufferKind.OUTPUT if tensor else BufferKind.INPUT,
            memory=0,
            shape=(sizes[tensor],),
            item=1,
        )
        for index, tensor in enumerate(outside)
    )
    buffers = tuple(
        Buffer(
            index=index,
            name=f"t{index}",
            kind=BufferKind.INTERMEDIATE,
            shape=(size,),
            starts_in=0 if index == 0 else None,
            ends_in=0 if index and index in outside else None,
            place=Place(outside.index(index), (0,)) if index in outside else None,
        )
        for index, size in enumerate(sizes)
    )
    return Problem(
        name=f"{len(sizes)} tensors",
        machine=_machine(budget),
        objective=Objective.of(Quantity.DRAM_TRAFFIC),
        tensors=tensors,
        buffers=buffers,
        slices=tuple(
            Slice(index=b.index, buffer=b.index, start=(0,), extent=b.shape, bytes=b.bytes)
            for b in buffers
        ),
        tasks=tuple(
            Task(index=i, name=f"op{i}", cycles=(10,), reads=some, writes=(i + 1,))
            for i, some in enumerate(reads)
        ),
    )


def _machine(budget: int) -> Machine:
    rate = Fraction(64)
    return Machine(
        name="one scratchpad",
        memories=(
            Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None),
            Memory(index=1, name="spm", kind=MemoryKind.SPM, size=budget),
        ),
        kinds=(CoreKind(index=0, name="core"),),
        cores=(Core(index=0, name="core", kind=0, memory=1),),
        links=(
            Link(index=0, source="dram", target="spm", rate=rate, latency=0),
            Link(index=1, source="spm", target="dram", rate=rate, latency=0),
        ),
        engines=(Engine(index=0, name="dma", owner=1, setup=0, rate=rate),),
    )


def largest_operator(sizes: list[int], reads: list[tuple[int, ...]]) -> int:
    """Return M_R."""
    return max(sizes[i + 1] + sum(sizes[t] for t in some) for i, some in enumerate(reads))


def least_peak(sizes: list[int], reads: list[tuple[int, ...]]) -> int:
    """Return M_P: best first over sets of operators that have run, by the peak so far."""
    readers: list[list[int]] = [[] for _ in sizes]
    for operator, some in enumerate(reads):
        for tensor in some:
            readers[tensor].append(operator)
    everything = (1 << len(reads)) - 1
    heap, seen = [(0, 0)], set()
    while heap:
        peak, done = heappop(heap)
        if done == everything:
            return peak
        if done in seen:
            continue
        seen.add(done)
        for operator, some in enumerate(reads):
            made = all(tensor == 0 or done >> (tensor - 1) & 1 for tensor in some)
            if done >> operator & 1 or not made:
                continue
            now = {operator + 1, *some}
            for tensor in range(len(sizes)):
                begun = any(done >> r & 1 for r in readers[0])
                if tensor:
                    begun = bool(done >> (tensor - 1) & 1)
                if begun and any(not done >> reader & 1 for reader in readers[tensor]):
                    now.add(tensor)
            used = sum(sizes[tensor] for tensor in now)
            heappush(heap, (max(peak, used), done | 1 << operator))
    return 0


def main() -> int:
    """Print a table; fail if the checker refuses a plan."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tensors", nargs="*", type=int, default=[20, 30, 40, 50, 60])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    options = SolveOptions(time_limit=given.seconds, workers=given.workers)
    refused = 0
    print("| tensors | budget | bytes | status | extra | extra at least | seconds |")
    print("|--:|---|--:|---|--:|--:|--:|")
    for tensors in given.tensors:
        sizes, reads = network(tensors, seed=tensors)
        least, peak = largest_operator(sizes, reads), least_peak(sizes, reads)
        for name, budget in (("M_R", least), ("M_H", (least + peak) // 2), ("M_P", peak)):
            problem = problem_of(sizes, reads, budget)
            began = monotonic()
            result = CpSatSolver().solve(problem, options)
            compulsory = sum(
                (b.starts_in is not None) * b.bytes + (b.ends_in is not None) * b.bytes
                for b in problem.buffers
            )
            extra = None
            if result.plan is not None:
                refused += bool(check(problem, result.plan))
                extra = result.plan.claim.dram_traffic - compulsory
            print(
                f"| {tensors} | {name} | {budget} | {result.status} | {extra} "
                f"| {result.bound - compulsory} | {monotonic() - began:.1f} |",
                flush=True,
            )
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
