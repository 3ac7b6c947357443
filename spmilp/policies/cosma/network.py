"""Operators on whole tensors, and a problem seen as such."""

from dataclasses import dataclass
from functools import cached_property

from spmilp.policies.one_after_another import NotTakenError
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One step: the tensors that it reads, each once, and the one that it writes."""

    name: str
    reads: tuple[int, ...]
    writes: int


@dataclass(frozen=True, kw_only=True)
class Network:
    """Operators in a topological order, on tensors that are kept or spilled as a whole.

    Parameters
    ----------
    sizes
        Bytes of each tensor.
    outputs
        Tensors that must be in DRAM at the end; what no operator writes is there at the start.
    """

    name: str
    sizes: tuple[int, ...]
    operators: tuple[Operator, ...]
    outputs: frozenset[int]

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The tensors that no operator writes."""
        written = {operator.writes for operator in self.operators}
        return tuple(t for t in range(len(self.sizes)) if t not in written)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each tensor the operators that read it."""
        found: list[list[int]] = [[] for _ in self.sizes]
        for index, operator in enumerate(self.operators):
            for tensor in operator.reads:
                found[tensor].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def writers(self) -> dict[int, int]:
        """The operator that writes each tensor."""
        return {operator.writes: index for index, operator in enumerate(self.operators)}

    @property
    def compulsory(self) -> int:
        """Bytes that cross the DRAM's port in any plan: inputs and outputs, once each."""
        return sum(self.sizes[tensor] for tensor in (*self.inputs, *self.outputs))


def network_of(tables: ProblemTables) -> tuple[Network, MemoryIdx, int]:
    """Return a problem's buffers and tasks, its scratchpad and the blocks of that.

    Sizes are in blocks of the scratchpad's alignment; a task that reads a part of a buffer reads
    the whole.

    Raises
    ------
    NotTakenError
        Unless one core with a limited scratchpad runs tasks that write one buffer each, need no
        scratch, fit as a whole, and DRAM traffic is to be small.
    """
    problem = tables.problem
    memory = _the_scratchpad(problem)
    capacity = tables.capacity[memory]
    if capacity is None or tables.machine.memories[memory].reserved:
        raise NotTakenError("cosma takes a scratchpad of limited size without reserved ranges")
    operators = []
    for task in problem.tasks:
        if len(task.writes) != 1 or task.scratch:
            raise NotTakenError(
                f"cosma takes tasks that write 1 buffer without scratch; task {task.name} writes "
                f"{len(task.writes)} and needs {task.scratch} B of scratch"
            )
        reads = tuple(dict.fromkeys(problem.slices[read].buffer for read in task.reads))
        operators.append(Operator(name=task.name, reads=reads, writes=task.writes[0]))
        used = sum(tables.blocks_of(buffer, memory) for buffer in (*reads, *task.writes))
        if used > capacity:
            block = tables.machine.memories[memory].alignment
            raise NotTakenError(
                f"cosma keeps whole buffers beside each other: task {task.name} with its operands "
                f"takes {used * block} B > {capacity * block} B; use smaller tiles"
            )
    network = Network(
        name=problem.name,
        sizes=tuple(tables.blocks_of(buffer.index, memory) for buffer in problem.buffers),
        operators=tuple(operators),
        outputs=frozenset(b.index for b in problem.buffers if b.ends_in is not None),
    )
    return network, memory, capacity


def _the_scratchpad(problem: Problem) -> MemoryIdx:
    cores = problem.machine.cores
    if len(cores) != 1:
        raise NotTakenError(f"cosma takes machines with 1 core; this one has {len(cores)}")
    if problem.objective.first is not Quantity.DRAM_TRAFFIC:
        raise NotTakenError(
            f"cosma makes dram_traffic small; this problem's objective is {problem.objective.first}"
        )
    if any(task.after for task in problem.tasks):
        name = next(task.name for task in problem.tasks if task.after)
        raise NotTakenError(f"cosma orders tasks by data alone; task {name} follows others without")
    return cores[0].memory
