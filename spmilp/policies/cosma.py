"""COSMA: order, addresses and spills of one scratchpad in one exact model, for few bytes moved.

Li, Gupta and Malik, "COSMA", arXiv 2311.18246; its equations 1 to 12 are known here from a public
re-implementation (gkeramidasCSD-Group/Scale-Sim-SPM).

What is taken: the model, with two gaps closed, over buffers as tensors
and tasks as operators. It is solved by CP-SAT; no big-M rows.

What the paper leaves open, or has otherwise, and what is done here:

- It counts spills of network inputs. Inputs and weights lie in DRAM anyway, and outputs go there,
  so as a solver a spill of these is free; the benchmark's reference keeps the paper's count.
- It has no times: what it decides happens one after another, and is then made short.
- It has no parts of tensors and nothing in place: every task needs its whole operands beside its
  whole result.
- Its divide and conquer for large networks is not here, nor its separate model of the least peak.

Not taken: more than one core, another objective than DRAM traffic, tasks with several results,
order without data, reserved ranges, data that begins or ends elsewhere than in one DRAM. A task's
scratch, which the paper does not have, takes bytes at its step.

The model. Equations 1 to 12: at each step one operator runs, and
each tensor is created, preserved, spilled, retrieved, or away; what is on the chip has an address,
which stays while the tensor is preserved; the bytes spilled and retrieved are to be few. Two gaps
are closed that allow more than the text means: at most one operator runs in a step, and nothing is
preserved or spilled in the first. A network input is created by a step of its own that reads
nothing; so are weights, where there are any.

The model is COSMA's, its writing is not, and no solution is lost by it: an operator runs no earlier
than after all before it in the graph, and no later than before all after it; tensors do not exist
before they can be created, nor after their last possible reader; disjoint addresses at a step are
one constraint over optional intervals instead of big-M rows for each pair; and that the bytes on
the chip add up to the budget at most, which disjoint addresses imply, is stated for its bound.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import networkx as nx
from ortools.sat.python.cp_model import (
    FEASIBLE,
    OPTIMAL,
    CpModel,
    CpSolver,
    IntVar,
    LinearExpr,
    LinearExprT,
)

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import NotTakenError, OneAfterAnother, Policy, Setting
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import NARROWING
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.units import BufferIdx


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One step: the tensors that it reads, each once, and the one that it writes.

    ``scratch`` is in units of the tensors' sizes.
    """

    name: str
    reads: tuple[int, ...]
    writes: int
    scratch: int = 0


@dataclass(frozen=True, kw_only=True)
class Network:
    """Operators in a topological order, on tensors that are kept or spilled as a whole.

    Sizes are bytes of each tensor. Outputs must be in DRAM at the end; what no operator writes is
    there at the start.
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
    def writers(self) -> dict[int, int]:
        """The operator that writes each tensor."""
        return {operator.writes: index for index, operator in enumerate(self.operators)}


def network_of(setting: Setting) -> tuple[Network, int]:
    """Return a problem's buffers and tasks, and the blocks of its scratchpad.

    Sizes are in blocks of the scratchpad's alignment; who reads a part of a buffer reads all.

    Raises a ``NotTakenError`` unless one core with a limited scratchpad runs tasks that write one
    buffer each, fit as a whole, and DRAM traffic is to be small.
    """
    problem, tables = setting.problem, setting.tables
    cores, first = problem.machine.cores, problem.objective.first
    if len(cores) != 1:
        raise NotTakenError(f"cosma takes machines with 1 core; this one has {len(cores)}")
    if first is not Quantity.DRAM_TRAFFIC:
        raise NotTakenError(f"cosma makes dram_traffic small; this problem's objective is {first}")
    memory = problem.machine.memories[cores[0].memory]
    capacity = tables.capacity[memory.index]
    if capacity is None or memory.reserved:
        raise NotTakenError("cosma takes a scratchpad of limited size without reserved ranges")
    operators = []
    for task in problem.tasks:
        if task.after:
            raise NotTakenError(
                f"cosma orders tasks by data alone; task {task.name} follows others without"
            )
        if len(task.writes) != 1:
            raise NotTakenError(
                f"cosma takes tasks that write 1 buffer; task {task.name} writes {len(task.writes)}"
            )
        reads = tuple(dict.fromkeys(map(setting.buffer_of, task.reads)))
        scratch, writes = tables.blocks(task.scratch, memory.index), task.writes[0]
        operators.append(Operator(name=task.name, reads=reads, writes=writes, scratch=scratch))
        used = scratch + sum(tables.blocks_of(each, memory.index) for each in (*reads, writes))
        if used > capacity:
            raise NotTakenError(
                f"cosma keeps whole buffers beside each other: task {task.name} with its operands "
                f"takes {used * memory.alignment} B > {capacity * memory.alignment} B; use smaller "
                "tiles"
            )
    network = Network(
        name=problem.name,
        sizes=tuple(tables.blocks_of(buffer.index, memory.index) for buffer in problem.buffers),
        operators=tuple(operators),
        outputs=frozenset(b.index for b in problem.buffers if b.ends_in is not None),
    )
    return network, capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class CosmaStep:
    """What happens at a step, in this order: spills, retrievals, and one tensor is created."""

    spilled: tuple[int, ...]
    retrieved: tuple[int, ...]
    created: int


class CosmaModel:
    """The model. Its tensors are those of the network, and so are its producers, one for each.

    Tensors ``outside`` lie in DRAM in any case: their spills move nothing and are free.
    """

    def __init__(self, network: Network, budget: int, others: frozenset[int] = frozenset()) -> None:
        self.cp = self._model = CpModel()
        self._sizes = network.sizes
        self._budget = budget
        self._scratch = {one.writes: one.scratch for one in network.operators if one.scratch}
        self._read_by: dict[int, tuple[int, ...]] = dict.fromkeys(network.inputs, ())
        for operator in network.operators:
            self._read_by[operator.writes] = operator.reads
        self._order = tuple(self._read_by)
        self._steps = _steps(self._read_by)
        last = {t: max(steps) for t, steps in self._steps.items()}
        for reader, reads in self._read_by.items():
            for tensor in reads:
                last[tensor] = max(last[tensor], max(self._steps[reader]))
        self._lives = {t: range(min(steps), last[t] + 1) for t, steps in self._steps.items()}
        self._created = self._booleans(self._steps)
        self._preserved = self._booleans(self._lives)
        self._spilled = self._booleans(self._lives)
        self._retrieved = self._booleans(self._lives)
        self._a_tensor_is_in_one_state()
        self._what_is_preserved_or_spilled_was_there()
        self._what_is_retrieved_was_spilled()
        self._operators_read_what_is_there()
        self._each_operator_runs_once_and_at_a_step_only_one()
        self._bytes_on_the_chip_are_within_the_budget()
        self._addresses_are_disjoint_and_stay()
        spills = [(t, v) for (t, _), v in self._spilled.items() if t not in others]
        retrievals = [(t, v) for (t, _), v in self._retrieved.items()]
        moved = [(self._sizes[t], v) for t, v in (*spills, *retrievals)]
        self._model.minimize(LinearExpr.weighted_sum([v for _, v in moved], [s for s, _ in moved]))

    def read(self, value: Callable[[IntVar], int]) -> Iterator[CosmaStep]:
        """Yield what a solution does at each step; ``value`` gives the value of a variable."""
        for step in range(len(self._order)):
            living = self._living(step)
            created = (t for t in living if (t, step) in self._created)
            yield CosmaStep(
                spilled=tuple(t for t in living if value(self._spilled[t, step])),
                retrieved=tuple(t for t in living if value(self._retrieved[t, step])),
                created=next(t for t in created if value(self._created[t, step])),
            )

    def _booleans(self, steps: dict[int, range]) -> dict[tuple[int, int], IntVar]:
        return {(t, step): self._model.new_bool_var("") for t in steps for step in steps[t]}

    def _resident(self, tensor: int, step: int) -> LinearExprT:
        kinds = (self._created, self._preserved, self._retrieved)
        return LinearExpr.sum([kind.get((tensor, step), 0) for kind in kinds])

    def _a_tensor_is_in_one_state(self) -> None:
        """Equation 1."""
        for tensor, step in self._preserved:
            spilled = self._spilled[tensor, step]
            self._model.add(LinearExpr.sum([self._resident(tensor, step), spilled]) <= 1)

    def _what_is_preserved_or_spilled_was_there(self) -> None:
        """Equations 2 and 3; at a tensor's first step there is nothing before."""
        for tensor, step in self._preserved:
            before = (tensor, step - 1)
            new = LinearExpr.sum([kind.get(before, 0) for kind in (self._created, self._preserved)])
            self._model.add(self._preserved[tensor, step] <= self._resident(*before))
            self._model.add(self._spilled[tensor, step] <= new)

    def _what_is_retrieved_was_spilled(self) -> None:
        """Equations 4 and 8."""
        for tensor, life in self._lives.items():
            for step in life:
                spilled = sum(self._spilled[tensor, k] for k in life if k <= step)
                self._model.add(self._retrieved[tensor, step] <= spilled)
            self._model.add(sum(self._spilled[tensor, k] for k in life) <= 1)

    def _operators_read_what_is_there(self) -> None:
        """Equation 5."""
        for tensor, step in self._created:
            for read in self._read_by[tensor]:
                there = [kind.get((read, step), 0) for kind in (self._preserved, self._retrieved)]
                self._model.add(self._created[tensor, step] <= sum(there))

    def _each_operator_runs_once_and_at_a_step_only_one(self) -> None:
        """Equation 7, and what the paper leaves unsaid."""
        for tensor, steps in self._steps.items():
            self._model.add_exactly_one(self._created[tensor, step] for step in steps)
        for step in range(len(self._order)):
            self._model.add_at_most_one(
                self._created[t, step] for t in self._order if (t, step) in self._created
            )

    def _bytes_on_the_chip_are_within_the_budget(self) -> None:
        """Implied by equations 9 and 10."""
        for step in range(len(self._order)):
            living = self._living(step)
            resident = [self._resident(t, step) for t in living]
            used = LinearExpr.weighted_sum(resident, [self._sizes[t] for t in living])
            scratch = [size * created for created, size in self._scratch_at(step)]
            self._model.add(used + LinearExpr.sum(scratch) <= self._budget)

    def _addresses_are_disjoint_and_stay(self) -> None:
        """Equations 9 to 11."""
        model, address = self._model, {}
        for step in range(len(self._order)):
            extents = []
            for tensor in self._living(step):
                size = self._sizes[tensor]
                here = model.new_int_var(0, self._budget - size, "")
                address[tensor, step] = here
                resident = model.new_bool_var("")
                model.add(resident == self._resident(tensor, step))
                extents.append(model.new_optional_fixed_size_interval_var(here, size, resident, ""))
            for created, size in self._scratch_at(step):
                here = model.new_int_var(0, self._budget - size, "")
                extents.append(model.new_optional_fixed_size_interval_var(here, size, created, ""))
            model.add_no_overlap(extents)
        for tensor, life in self._lives.items():
            for before, step in pairwise(life):
                stays = address[tensor, step] == address[tensor, before]
                model.add(stays).only_enforce_if(self._preserved[tensor, step])

    def _scratch_at(self, step: int) -> Iterator[tuple[IntVar, int]]:
        """Yield whether each operator with scratch runs at a step, and its scratch."""
        for tensor, size in self._scratch.items():
            if (tensor, step) in self._created:
                yield self._created[tensor, step], size

    def _living(self, step: int) -> list[int]:
        return [tensor for tensor, life in self._lives.items() if step in life]


def _steps(read_by: dict[int, tuple[int, ...]]) -> dict[int, range]:
    """Return the steps at which each tensor can be created, by what its operator reads."""
    graph = nx.DiGraph((read, one) for one, reads in read_by.items() for read in reads)
    graph.add_nodes_from(read_by)
    return {
        one: range(len(nx.ancestors(graph, one)), len(read_by) - len(nx.descendants(graph, one)))
        for one in read_by
    }


MOST_TENSORS = 400
"""The model has variables for each tensor at each step, and there are as many steps."""

PATIENCE = 60.0
"""Deterministic time where no time limit ends the search; about seconds."""

SHARE = 0.9
"""Share of the time limit by which the model's search has ended."""


class Cosma(Policy):
    """Decides order, addresses and spills of one scratchpad together, for least DRAM traffic."""

    name = "cosma"
    keeps = NARROWING - {PinKind.NOT_BEFORE}  # for which there would have to be a second core

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the model's best solution; the bound is one that takes no search."""
        setting = Setting(context.problem, self.name)
        network, capacity = network_of(setting)
        if len(network.sizes) > MOST_TENSORS:
            raise NotTakenError(
                f"cosma's model is for {MOST_TENSORS} buffers at most; there are "
                f"{len(network.sizes)}; use larger tiles"
            )
        model = CosmaModel(network, capacity, frozenset(network.inputs) | network.outputs)
        solver, found = CpSolver(), False
        with context.until_interrupted(lambda: found):
            found = self._solve(context, model, solver)
        if not found:
            return context.unknown("cosma's model: no solution was found within the limits")
        plan = _taken_down(setting, network, model.read(solver.value)).plan()
        if not isinstance(plan, Plan):
            name = context.problem.machine.memories[plan.memory].name
            return context.unknown(f"no addresses for cosma's solution in {name}")
        return self.answer(context, plan)

    def _solve(self, context: SearchContext, model: CosmaModel, solver: CpSolver) -> bool:
        """Search, in another thread; say whether there is a solution."""
        parameters, clock = solver.parameters, context.clock
        parameters.num_workers = context.options.workers
        parameters.random_seed = context.options.seed
        parameters.catch_sigint_signal = False
        constraints = len(model.cp.proto.constraints)
        seconds = clock.engine_seconds(SHARE)
        work = clock.deterministic_left(share=SHARE, constraints=constraints)
        if seconds is not None:
            parameters.max_time_in_seconds = max(0.1, seconds)
        if work is not None or seconds is None:
            parameters.max_deterministic_time = PATIENCE if work is None else work
        status, stopped = context.reports.finish(lambda: solver.solve(model.cp), solver.stop_search)
        clock.spend(solver.deterministic_time, constraints)
        found = status in (OPTIMAL, FEASIBLE)
        if stopped and not found:
            raise KeyboardInterrupt
        context.interrupted |= stopped
        return found


def _taken_down(setting: Setting, network: Network, steps: Iterator[CosmaStep]) -> OneAfterAnother:
    """Write down each step's spills, loads and task; outputs are stored when they are written."""
    problem, written = setting.problem, OneAfterAnother(setting)
    memory = problem.machine.cores[0].memory
    outside = set(network.inputs)
    held: dict[BufferIdx, CandidateResidency] = {}
    for step in steps:
        for buffer in step.spilled:
            if buffer not in outside:
                written.store(held[buffer])
                outside.add(buffer)
        for buffer in step.retrieved:
            held[buffer] = written.load(buffer, memory)
        if step.created not in network.writers:
            held[step.created] = written.load(step.created, memory)
            continue
        task = problem.tasks[network.writers[step.created]]
        operands = [held[setting.buffer_of(read)] for read in task.reads]
        held.update(written.run(task.index, operands))
        if step.created in network.outputs:
            written.store(held[step.created])
            outside.add(step.created)
    return written
