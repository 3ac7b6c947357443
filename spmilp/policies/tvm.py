"""TVM's latency hiding: load, compute and store stages of virtual threads, tied by tokens.

The policy says what each stage does for each task; queues of instructions that wait for tokens are
replayed against the machine's transfers.

T. Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning", OSDI 2018,
section 4.4; the tokens between stages are those of VTA's instructions, which pop and push
dependences on the stage before and the stage after.

What is taken: each core has a stage that loads, one that computes and one that stores, which run
their instructions in order, and beside each other. Virtual threads take turns with the tasks of a
core; each has room for the operands and for the results of one task. A task's loads wait until the
computation that last used their room has ended, the computation for its loads and until the results
before have been stored, the stores for the computation. ``tvm:serial`` is the same without hiding:
one thread, whose loads also wait for the stores of the task before.

What the paper leaves open, or has otherwise: tiles are the problem's, and all operands of a task
are loaded for it and all its results stored, partial sums included; nothing stays for the next
task. Operands and results share one scratchpad. Tasks run in the problem's topological order, runs
of neighbouring tiles of an operator on each core; what one task stores and another loads is tied by
a token too, on whatever cores they are. There are two virtual threads, or one where two have no
room; where one has none either, everything on a core happens one after another, and results take
over the bytes of operands.

No deadlock: with tasks in that one order, and of each task the loads, the computation and the
stores, every token that an instruction waits for is there at first or given by an instruction
before it, and each stage runs its own in that order. The replay shows it again for each plan.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heappop, heappush
from math import lcm
from typing import TypeAlias

from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    quickest_transfer,
    the_dram,
)
from spmilp.policies.onsram import cores_of
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.addresses import ConflictSet
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.extraction import Decisions
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx

Token: TypeAlias = Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One step of a stage.

    Parameters
    ----------
    about
        What it is a part of.
    transfer
        What moves, with the resources that it holds meanwhile; ``None`` for a computation.
    takes
        Tokens that it waits for, and takes away: one of each.
    needs
        Tokens that it waits for and leaves: data that several instructions read.
    gives
        Tokens that are there once it has ended.
    """

    name: str
    cycles: Cycles = 0
    about: Hashable = None
    transfer: TransferOption | None = None
    takes: tuple[Token, ...] = ()
    needs: tuple[Token, ...] = ()
    gives: tuple[Token, ...] = ()


class DeadlockError(RuntimeError):
    """Instructions are left that wait for tokens which nothing gives."""


def replay(
    machine: Machine,
    queues: Sequence[Sequence[Instruction]],
    given: Sequence[Token],
    go_on: Callable[[], None] = lambda: None,
) -> list[list[Cycles]]:
    """Return when each instruction of each queue starts.

    At each cycle at which something ends, the first instruction of every queue is tried, queue by
    queue.

    Parameters
    ----------
    given
        Tokens that are there at the start, each as often as it is named.
    go_on
        Called whenever something has ended; what it raises passes on.

    Raises
    ------
    DeadlockError
        If instructions are left that can never start; the message names the first of each queue.
    """
    return _Replay(machine, queues, given).starts(go_on)


class _Replay:
    """What is there at one cycle: tokens, free channels, what is free of links, what runs.

    A queue whose first instruction cannot start waits for one thing that it lacks, and is tried
    again when there is more of that.
    """

    def __init__(
        self, machine: Machine, queues: Sequence[Sequence[Instruction]], given: Sequence[Token]
    ) -> None:
        self._queues = queues
        self._tokens = Counter(given)
        self._channels = {engine.index: engine.channels for engine in machine.engines}
        # Whole numbers are much quicker than fractions.
        rates = [link.rate for link in machine.links] + [one.rate for one in machine.engines]
        whole = lcm(*(rate.denominator for rate in rates))
        self._rates = {link.index: int(link.rate * whole) for link in machine.links}
        self._rates_of = [
            [0 if one.transfer is None else int(one.transfer.rate * whole) for one in queue]
            for queue in queues
        ]
        self._starts: list[list[Cycles]] = [[] for _ in queues]
        self._running: list[tuple[Cycles, int]] = []
        self._waiting: dict[Hashable, set[int]] = defaultdict(set)

    def starts(self, go_on: Callable[[], None]) -> list[list[Cycles]]:
        now: Cycles = 0
        awake = set(range(len(self._queues)))
        while True:
            for number in sorted(awake):
                self._try(number, now)
            if not self._running:
                break
            go_on()
            now = self._running[0][0]
            awake = set()
            while self._running and self._running[0][0] == now:
                awake |= self._end(heappop(self._running)[1])
        if any(map(self._next, range(len(self._queues)))):
            raise DeadlockError(self._what_is_left())
        return self._starts

    def _next(self, number: int) -> Instruction | None:
        """Return the first instruction of a queue that has not started."""
        queue, done = self._queues[number], len(self._starts[number])
        return queue[done] if done < len(queue) else None

    def _try(self, number: int, now: Cycles) -> None:
        """Start the first instruction of a queue that runs nothing, or let it wait."""
        one = self._next(number)
        if one is None:
            return
        lacking = next(self._lacking(one, number), None)
        if lacking is not None:
            self._waiting[lacking].add(number)
            return
        self._tokens.subtract(one.takes)
        self._starts[number].append(now)
        self._hold(one.transfer, number, -1)
        heappush(self._running, (now + one.cycles, number))

    def _end(self, number: int) -> set[int]:
        """End what a queue runs; return the queues that may be able to start something then."""
        ended = self._queues[number][len(self._starts[number]) - 1]
        self._tokens.update(ended.gives)
        self._hold(ended.transfer, number, 1)
        awake = {number}
        for thing in (*ended.gives, *_held(ended.transfer)):
            awake |= self._waiting.pop(thing, set())
        return awake

    def _lacking(self, one: Instruction, number: int) -> Iterator[Hashable]:
        """Yield what is not there of what the next instruction of a queue takes, needs or holds."""
        yield from (token for token in (*one.takes, *one.needs) if self._tokens[token] <= 0)
        if one.transfer is not None:
            if self._channels[one.transfer.engine] == 0:
                yield "engine", one.transfer.engine
            rate = self._rates_of[number][len(self._starts[number])]
            for link in one.transfer.links:
                if self._rates[link] < rate:
                    yield "link", link

    def _hold(self, transfer: TransferOption | None, number: int, sign: int) -> None:
        """Take or give back what the last started instruction of a queue holds."""
        if transfer is not None:
            self._channels[transfer.engine] += sign
            rate = self._rates_of[number][len(self._starts[number]) - 1]
            for link in transfer.links:
                self._rates[link] += sign * rate

    def _what_is_left(self) -> str:
        return "; ".join(
            f"{one.name} waits for {', '.join(map(str, self._lacking(one, number)))}"
            for number in range(len(self._queues))
            if (one := self._next(number)) is not None
        )


def _held(transfer: TransferOption | None) -> Iterator[Hashable]:
    """Yield the engine and the links of a transfer, as what others wait for."""
    if transfer is not None:
        yield "engine", transfer.engine
        yield from (("link", link) for link in transfer.links)


THREADS = 2


class Stage(StrEnum):
    """A part of a core that runs instructions of its own."""

    LOAD = "load"
    COMPUTE = "compute"
    STORE = "store"


class Room(StrEnum):
    """What a virtual thread has room for; a token of it is a room that is free."""

    OPERANDS = "operands"
    RESULTS = "results"


_Queue: TypeAlias = tuple[CoreIdx, Stage]


class Tvm(Solver):
    """Hides the latency of transfers behind the tasks of another virtual thread.

    Parameters
    ----------
    hides
        Otherwise tasks and transfers of a core run one after another.
    """

    def __init__(self, *, hides: bool = True) -> None:
        self._hides = hides
        self.name = "tvm" if hides else "tvm:serial"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the one plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            found, how = self._plan(context)
        except NotTakenError as error:
            return context.unknown(str(error))
        if isinstance(found, str):
            return context.unknown(found)
        bound = context.bound
        context.report(context.values(found)[0], bound.value, self.name)
        return context.found(found, bound, self.name, (("virtual threads", how),))

    def _plan(self, context: SearchContext) -> tuple[Plan | str, str]:
        """Return a plan or why there is none, and its virtual threads."""
        if self._hides:
            stages = _Stages(context, hides=True)
            for threads in range(THREADS, 0, -1):
                if isinstance(found := stages.plan(threads), Plan):
                    return found, str(threads)
        stages = _Stages(context, hides=False)
        found = stages.plan(1)
        if isinstance(found, ConflictSet):
            found = stages.plan(1, overwriting=True)
        if isinstance(found, ConflictSet):
            return stages.why_there_is_no_room(found), ""
        return found, "1, one after another"


class _Stages:
    """Writes the instructions of all stages, and makes a plan of them."""

    def __init__(self, context: SearchContext, *, hides: bool) -> None:
        self._context = context
        self._hides = hides
        self._problem = context.problem
        self._tables = ProblemTables(context.problem)
        self._dram = the_dram(context.problem, "tvm")
        self._on = cores_of(self._tables)
        self._pools = {core: pool.index for pool in self._tables.pools for core in pool.cores}
        self._read = {self._problem.slices[r].buffer for t in self._problem.tasks for r in t.reads}
        self._written = OneAfterAnother(self._tables, self._dram)
        self._ways: dict[tuple[int, int, int, int], TransferOption | None] = {}
        cores = range(len(self._problem.machine.cores))
        self._queues: dict[_Queue, list[Instruction]] = {
            (core, stage): [] for core in cores for stage in Stage
        }
        for task in self._problem.topological_order():
            self._write(task, self._on[task])
        self._decisions = self._written.decisions()

    def plan(self, threads: int, *, overwriting: bool = False) -> Plan | ConflictSet:
        """Return the plan of so many virtual threads on each core; or what has no addresses.

        Parameters
        ----------
        overwriting
            Results take over the bytes of operands where they may, of which nothing is read later.
        """
        cores = range(len(self._problem.machine.cores))
        given = [(room, core) for room in Room for core in cores for _ in range(threads)]
        queues = list(self._queues.values())
        starts = replay(self._problem.machine, queues, given, self._within_the_limit)
        times = {
            one.about: (start, start + one.cycles)
            for queue, begun in zip(queues, starts, strict=True)
            for one, start in zip(queue, begun, strict=True)
        }
        on = dict(enumerate(self._on))
        decisions = self._timed(times)
        if not overwriting:
            decisions = replace(decisions, in_place=())
        return addressed(self._tables, decisions, on, self._context.fast_bound)

    def _within_the_limit(self) -> None:
        if self._context.clock.is_over():
            raise NotTakenError("the time limit came before tvm's instructions were replayed")

    def why_there_is_no_room(self, found: ConflictSet) -> str:
        """Say which memory does not hold what one virtual thread needs."""
        memory = self._problem.machine.memories[found.memory]
        size = sum(
            self._problem.slices[item.slice].bytes
            for item in found.items
            if isinstance(item, CandidateResidency)
        )
        return (
            f"{self._problem.name}: tvm has {size} B of operands and results at one time in "
            f"{memory.name} ({memory.usable} B), with one virtual thread on each core, and no "
            "addresses for them; use smaller tiles or a larger scratchpad"
        )

    def _write(self, task: TaskIdx, core: CoreIdx) -> None:
        """Write the instructions of the next task."""
        wanted, pool = self._problem.tasks[task], self._pools[core]
        memory = self._tables.pools[pool].memory
        held: dict[SliceIdx, CandidateResidency] = {}
        operands = []
        for read in wanted.reads:
            source = self._copied(read, memory)
            if source not in held:
                held[source] = self._written.load(source, memory)
            operands.append(held[source])
        loads = [self._load(residency) for residency in held.values()]
        results = self._written.run(task, pool, operands)
        self._overwrite(task, operands, results)
        stores = [
            self._store(result) for buffer, result in results.items() if self._is_stored(buffer)
        ]
        run = Instruction(
            name=f"task {wanted.name}",
            cycles=self._tables.cycles_on(task, pool),
            about=task,
            needs=tuple(("ended", other) for other in wanted.after),
            gives=(("ended", task),),
        )
        operands_free, results_free = ((room, core) for room in Room)
        loaded, computed = ("loaded", core), ("computed", core)
        # Without hiding, the room of operands is free only once the results are stored.
        freed = (operands_free,) if self._hides else ()
        stored = (results_free,) if self._hides else (results_free, operands_free)
        self._append(core, Stage.LOAD, loads, (operands_free,), (loaded,))
        self._append(core, Stage.COMPUTE, [run], (loaded, results_free), (computed, *freed))
        self._append(core, Stage.STORE, stores, (computed,), stored)

    def _overwrite(
        self,
        task: TaskIdx,
        operands: Sequence[CandidateResidency],
        results: Mapping[BufferIdx, CandidateResidency],
    ) -> None:
        """Take down which result may take over the bytes of which operand: each at most once."""
        wanted = self._problem.tasks[task]
        taken: set[CandidateResidency | BufferIdx] = set()
        for read, buffer in wanted.in_place:
            old = operands[wanted.reads.index(read)]
            if old.slice == read and taken.isdisjoint((old, buffer)):
                self._written.overwrite(task, old, results[buffer])
                taken |= {old, buffer}

    def _append(
        self,
        core: CoreIdx,
        stage: Stage,
        steps: list[Instruction],
        takes: tuple[Token, ...],
        gives: tuple[Token, ...],
    ) -> None:
        """Append what a stage does for a task: the first step takes tokens, the last gives some."""
        steps = steps or [Instruction(name="nothing")]
        steps[0] = replace(steps[0], takes=takes)
        steps[-1] = replace(steps[-1], gives=(*steps[-1].gives, *gives))
        self._queues[core, stage] += steps

    def _copied(self, read: SliceIdx, memory: MemoryIdx) -> SliceIdx:
        """Return what is loaded to serve a read: the slice, or its buffer if no engine can."""
        buffer = self._problem.slices[read].buffer
        return read if self._way(read, buffer, self._dram, memory) else buffer

    def _is_stored(self, buffer: BufferIdx) -> bool:
        return buffer in self._read or self._problem.buffers[buffer].ends_in == self._dram

    def _load(self, residency: CandidateResidency) -> Instruction:
        buffer = self._problem.buffers[self._problem.slices[residency.slice].buffer]
        option = self._way(residency.slice, buffer.index, self._dram, residency.memory)
        return Instruction(
            name=f"load of {buffer.name}",
            cycles=0 if option is None else option.cycles,
            about=residency,
            transfer=option,
            needs=() if buffer.starts_in == self._dram else (("data", buffer.index),),
        )

    def _store(self, result: CandidateResidency) -> Instruction:
        self._written.store(result)
        option = self._way(result.slice, result.slice, result.memory, self._dram)
        return Instruction(
            name=f"store of {self._problem.buffers[result.slice].name}",
            cycles=0 if option is None else option.cycles,
            about=self._written.in_dram(result.slice),
            transfer=option,
            gives=(("data", result.slice),),
        )

    def _way(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, to: MemoryIdx
    ) -> TransferOption | None:
        key = slice_, holder, source, to
        if key not in self._ways:
            self._ways[key] = quickest_transfer(self._tables, *key)
        return self._ways[key]

    def _timed(self, times: Mapping[Hashable, tuple[Cycles, Cycles]]) -> Decisions:
        """Return the decisions with the times of the replay."""
        runs = tuple(
            replace(run, start=times[task][0], end=times[task][1])
            for task, run in enumerate(self._decisions.runs)
        )
        fills = {}
        for residency, fill in self._decisions.fills.items():
            if fill.source is not None:
                fill = replace(fill, start=times[residency][0])
            elif (writer := self._tables.writers[residency.slice]) is not None:
                fill = replace(fill, start=runs[writer].start)
            fills[residency] = fill
        return replace(self._decisions, runs=runs, fills=fills)
