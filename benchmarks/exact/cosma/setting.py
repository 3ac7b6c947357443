"""The budgets of COSMA for operators on whole tensors, and the same as a problem on one core."""

from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from ortools.sat.python.cp_model import FEASIBLE, OPTIMAL, CpSolver

from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.policies.cosma import CosmaModel, Network
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Task, whole_slice


def readers_of(network: Network) -> tuple[tuple[int, ...], ...]:
    """Return for each tensor the operators that read it."""
    found: list[list[int]] = [[] for _ in network.sizes]
    for index, operator in enumerate(network.operators):
        for tensor in operator.reads:
            found[tensor].append(index)
    return tuple(map(tuple, found))


def compulsory_bytes(network: Network) -> int:
    """Return the bytes that cross the DRAM's port in any plan: inputs and outputs, once each."""
    return sum(network.sizes[tensor] for tensor in (*network.inputs, *network.outputs))


def largest_operator(network: Network) -> int:
    """Return M_R: the bytes of the largest operator with its operands."""
    return max(
        sum(network.sizes[tensor] for tensor in (operator.writes, *operator.reads))
        for operator in network.operators
    )


def least_peak(network: Network) -> int:
    """Return M_P: the least peak of live bytes of any order in which nothing is spilled.

    Best first over the sets of operators that have run, by the peak so far; exact. An input is live
    from its first reader, an output after its last one is not.
    """
    needs = [
        sum(1 << network.writers[t] for t in operator.reads if t in network.writers)
        for operator in network.operators
    ]
    masks = [sum(1 << reader for reader in readers) for readers in readers_of(network)]
    everything = (1 << len(network.operators)) - 1
    heap, seen = [(0, 0)], set()
    while heap:
        peak, done = heappop(heap)
        if done == everything:
            return peak
        if done in seen:
            continue
        seen.add(done)
        live = {
            tensor
            for tensor, readers in enumerate(masks)
            if readers & ~done
            and (
                done >> network.writers[tensor] & 1 if tensor in network.writers else readers & done
            )
        }
        for index, operator in enumerate(network.operators):
            if done >> index & 1 or needs[index] & ~done:
                continue
            used = sum(network.sizes[t] for t in live | {operator.writes, *operator.reads})
            heappush(heap, (max(peak, used), done | 1 << index))
    raise ValueError(f"network {network.name}: its operators wait for each other in a circle")


def problem_of(network: Network, budget: int) -> Problem:
    """Return the problem on one core with a scratchpad of ``budget`` bytes."""
    outside = sorted({*network.inputs, *network.outputs})
    home = {tensor: index for index, tensor in enumerate(outside)}
    kinds = {
        **dict.fromkeys(network.outputs, BufferKind.OUTPUT),
        **dict.fromkeys(network.inputs, BufferKind.INPUT),
    }
    buffers = tuple(
        Buffer(
            index=index,
            name=f"t{index}",
            kind=kinds.get(index, BufferKind.INTERMEDIATE),
            shape=(size,),
            starts_in=0 if index in network.inputs else None,
            ends_in=0 if index in network.outputs else None,
            place=Place(home[index], (0,)) if index in home else None,
        )
        for index, size in enumerate(network.sizes)
    )
    return Problem(
        name=f"{network.name} in {budget} B",
        machine=_machine(budget),
        objective=Objective.of(Quantity.DRAM_TRAFFIC),
        tensors=tuple(
            DramTensor(
                index=index,
                name=f"t{tensor}",
                kind=kinds[tensor],
                memory=0,
                shape=(network.sizes[tensor],),
                item=1,
            )
            for index, tensor in enumerate(outside)
        ),
        buffers=buffers,
        slices=tuple(map(whole_slice, buffers)),
        tasks=tuple(
            Task(
                index=index,
                name=operator.name,
                cycles=(10,),
                reads=operator.reads,
                writes=(operator.writes,),
            )
            for index, operator in enumerate(network.operators)
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


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What COSMA's model gives: bytes beyond the compulsory ones, and a proven bound on them.

    Parameters
    ----------
    extra
        ``None`` without a solution.
    """

    status: str
    extra: int | None
    bound: int


def solve(network: Network, budget: int, *, seconds: float, workers: int = 1) -> Answer:
    """Search for the fewest bytes that are spilled and retrieved, as COSMA counts them."""
    model = CosmaModel(network, budget)
    solver = CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    ended = solver.solve(model.cp)
    status = {OPTIMAL: "optimal", FEASIBLE: "feasible"}.get(ended, "unknown")
    found = None if status == "unknown" else round(solver.objective_value)
    return Answer(status=status, extra=found, bound=round(solver.best_objective_bound))
