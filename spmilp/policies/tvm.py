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
room; where one has none either, everything on a core happens one after another.

No deadlock: with tasks in that one order, and of each task the loads, the computation and the
stores, every token that an instruction waits for is there at first or given by an instruction
before it, and each stage runs its own in that order.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import lcm
from typing import Any, TypeAlias

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import NotTakenError, OneAfterAnother, Policy, Setting
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import ConflictSet
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.units import CoreIdx, Cycles, SliceIdx, TaskIdx

Resource: TypeAlias = Hashable
"""Tokens of one kind, channels of an engine, or what is free of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One step of a stage, a part of what it is ``about``.

    It waits for so much of each resource as it ``takes`` away, and for tokens that it ``needs`` and
    leaves: data that several instructions read. It ``gives`` more resources some cycles ``late``,
    counted from its end.
    """

    cycles: Cycles = 0
    about: Hashable = None
    takes: Mapping[Any, int] = field(default_factory=dict)
    needs: tuple[Resource, ...] = ()
    gives: Mapping[Any, int] = field(default_factory=dict)
    late: Cycles = 0


def replayed(
    queues: Sequence[Sequence[Instruction]], free: Mapping[Resource, int], clock: Clock
) -> list[list[Cycles]]:
    """Return when each instruction of each queue starts.

    At each cycle at which something ends, the first instruction of every queue is tried, queue by
    queue. One that cannot start waits for one resource that it lacks, and is tried again when there
    is more of that. At the start so much of each resource is ``free``.

    Raises a ``NotTakenError`` if the time limit comes before.
    """
    left = Counter(free)
    starts: list[list[Cycles]] = [[] for _ in queues]
    running: list[tuple[Cycles, int, int, bool]] = []
    waiting: dict[Resource, set[int]] = defaultdict(set)
    now, awake = 0, set(range(len(queues)))
    while True:
        for number in sorted(awake):
            done = len(starts[number])
            if done == len(queues[number]):
                continue
            one = queues[number][done]
            wanted = (*one.takes.items(), *((token, 1) for token in one.needs))
            lacking = next((resource for resource, n in wanted if left[resource] < n), None)
            if lacking is not None:
                waiting[lacking].add(number)
                continue
            left.subtract(one.takes)
            starts[number].append(now)
            end = now + one.cycles
            heappush(running, (end, number, done, False))
            heappush(running, (end + one.late, number, done, True))
        if not running:
            return starts
        if clock.is_over():
            replayed = sum(map(len, starts))
            raise NotTakenError(
                f"the time limit came when {replayed} of {sum(map(len, queues))} instructions of "
                "tvm were replayed; allow more time"
            )
        now, awake = running[0][0], set()
        while running and running[0][0] == now:
            _, number, done, is_given = heappop(running)
            if is_given:
                gives = queues[number][done].gives
                left.update(gives)
                awake = awake.union(*(waiting.pop(one, ()) for one in gives))
            else:
                awake.add(number)


THREADS = 2
"""Virtual threads of a core, if memory has room for them."""


class Tvm(Policy):
    """Hides the latency of transfers behind the tasks of another virtual thread.

    If it is not to hide it, tasks and transfers of a core run one after another.
    """

    def __init__(self, *, hides: bool = True) -> None:
        self._hides = hides
        self.name = "tvm" if hides else "tvm:serial"

    def find(self, context: SearchContext) -> SolverResult:
        """Return the one plan of the policy."""
        setting = Setting(context.problem, "tvm")
        for hides in (True, False) if self._hides else (False,):
            stages = _Stages(context, setting, hides=hides)
            for threads in range(THREADS if hides else 1, 0, -1):
                found = stages.plan(threads)
                if isinstance(found, Plan):
                    how = str(threads) if hides else "1, one after another"
                    return self.answer(context, found, (("virtual threads", how),), is_short=True)
                reason = _no_room(setting, found)
        return context.unknown(reason)


def _no_room(setting: Setting, found: ConflictSet) -> str:
    """Say which memory does not hold what one virtual thread needs."""
    memory = setting.problem.machine.memories[found.memory]
    slices = (item.slice for item in found.items if isinstance(item, CandidateResidency))
    size = sum(setting.problem.slices[slice_].bytes for slice_ in slices)
    return (
        f"{setting.problem.name}: tvm has {size} B of operands and results at one time in "
        f"{memory.name} ({memory.usable} B), with one virtual thread on each core, and no "
        "addresses for them; use smaller tiles or a larger scratchpad"
    )


class _Stages:
    """Writes the instructions of all stages, and makes a plan of them.

    Each core has a queue that loads, one that computes and one that stores. Tokens say that a
    virtual thread has room for operands or for results, that data is there, that a task ended.
    """

    def __init__(self, context: SearchContext, setting: Setting, *, hides: bool) -> None:
        self._clock = context.clock
        self._setting = setting
        self._hides = hides
        self._problem, self._dram = setting.problem, setting.dram
        self._stored = {setting.buffer_of(r) for t in self._problem.tasks for r in t.reads}
        self._stored |= {b.index for b in self._problem.buffers if b.ends_in == self._dram}
        self._written = OneAfterAnother(setting)
        machine = self._problem.machine
        # Whole numbers are much quicker than fractions.
        rates = [link.rate for link in machine.links] + [one.rate for one in machine.engines]
        self._unit = lcm(*(rate.denominator for rate in rates))
        # Channels of engines, and rates of links in parts of bytes per cycle.
        self._free: dict[Resource, int] = {
            ("engine", one.index): one.channels for one in machine.engines
        }
        for link in machine.links:
            self._free["link", link.index] = int(link.rate * self._unit)
        for buffer in self._problem.buffers:
            if buffer.starts_in == self._dram:
                self._free[self._written.in_dram(buffer.index)] = 1
        self._loads, self._computations, self._stores = (
            [list[Instruction]() for _ in machine.cores] for _ in range(3)
        )
        for task in self._problem.topological_order():
            self._write(task, setting.cores[task])
        self._decisions = self._written.decisions()

    def plan(self, threads: int) -> Plan | ConflictSet:
        """Return the plan of so many virtual threads on each core; or what has no addresses.

        Raises a ``NotTakenError`` if the time limit comes before.
        """
        by_core = zip(self._loads, self._computations, self._stores, strict=True)
        queues = [queue for stages in by_core for queue in stages]
        rooms: dict[Resource, int] = {
            (room, core): threads
            for room in ("operands", "results")
            for core in range(len(self._problem.machine.cores))
        }
        starts = replayed(queues, {**self._free, **rooms}, self._clock)
        begun = {
            one.about: start
            for queue, times in zip(queues, starts, strict=True)
            for one, start in zip(queue, times, strict=True)
        }
        runs = tuple(
            replace(run, start=begun[task], end=begun[task] + run.end - run.start)
            for task, run in enumerate(self._decisions.runs)
        )
        fills = {}
        for residency, fill in self._decisions.fills.items():
            if fill.engine is not None:
                setup = self._problem.machine.engines[fill.engine].setup
                fill = replace(fill, start=begun[residency] - setup)
            elif (writer := self._setting.tables.writers[residency.slice]) is not None:
                fill = replace(fill, start=begun[writer])
            fills[residency] = fill
        return self._setting.addressed(replace(self._decisions, runs=runs, fills=fills))

    def _write(self, task: TaskIdx, core: CoreIdx) -> None:
        """Write the instructions of the next task."""
        wanted, memory = self._problem.tasks[task], self._setting.memories[task]
        operands_free, results_free = {("operands", core): 1}, {("results", core): 1}
        self._loads[core].append(Instruction(takes=operands_free))
        held: dict[SliceIdx, CandidateResidency] = {}
        operands = []
        for read in wanted.reads:
            buffer = self._setting.buffer_of(read)
            source = read if self._setting.way(read, buffer, self._dram, memory) else buffer
            if source not in held:
                held[source] = self._written.load(source, memory)
                place = self._written.in_dram(buffer)
                self._loads[core] += self._move(place, held[source])
            operands.append(held[source])
        results = self._written.run(task, operands)
        ended = dict.fromkeys((task, *results.values()), 1)
        # Without hiding, the room of operands is free only once the results are stored.
        self._computations[core].append(
            Instruction(
                cycles=self._setting.cycles(task),
                about=task,
                takes=results_free,
                needs=(*wanted.after, *operands),
                gives=ended | operands_free if self._hides else ended,
            )
        )
        self._stores[core].append(Instruction(needs=(task,)))
        for buffer, result in results.items():
            if buffer in self._stored:
                self._written.store(result)
                self._stores[core] += self._move(result, self._written.in_dram(buffer))
        stored_gives = results_free if self._hides else results_free | operands_free
        self._stores[core].append(Instruction(gives=stored_gives))

    def _move(self, source: CandidateResidency, into: CandidateResidency) -> Iterator[Instruction]:
        """Yield the steps of a transfer: it sets up, sends, frees its channel, and arrives."""
        option = self._setting.transfer(into.slice, source.slice, source.memory, into.memory)
        engine = self._problem.machine.engines[option.engine]
        busy = engine.busy_until(option.sent, option.cycles)
        channel, rate = {("engine", engine.index): 1}, int(option.rate * self._unit)
        links = {("link", link): rate for link in option.links}
        yield Instruction(cycles=engine.setup, takes=channel, needs=(source,))
        yield Instruction(cycles=option.moving, about=into, takes=links, gives=links)
        yield Instruction(cycles=busy - option.sent, gives=channel)
        yield Instruction(late=option.cycles - busy, gives={into: 1})
