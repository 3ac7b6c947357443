"""Lower bounds on the period of a stream of inferences: what each of them takes is taken anew."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from spmilp.bounds.linear_program import LinearProgram, proven_minimum
from spmilp.bounds.movement import Distances, DramTransfers, Ends
from spmilp.bounds.proof import Bound, Proof
from spmilp.bounds.resources import kinds_able, unions
from spmilp.problem.loads import Load, Share, least_loads
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Buffer, Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, SliceIdx

ITERATIONS = 200_000
"""Limit on the iterations of the dual simplex."""

MOST_PASSES = 200
"""Over all tasks, to find starts for a period."""

LONGEST = 1 << 60
"""Periods that are looked at are shorter, in cycles."""


def period_bound(problem: Problem) -> Bound:
    """Return the largest bound on the period: no stream of the problem's inferences has less."""
    return max((proof.bound() for proof in proofs_of_period(problem)), key=lambda one: one.value)


def proofs_of_period(problem: Problem) -> Iterator[Proof]:
    """Yield a proof of every bound on the period in cycles, the quick ones first."""
    yield Proof("work", Quantity.PERIOD, partial(work_period, problem))
    if len({core.kind for core in problem.machine.cores}) > 1:
        yield Proof("shares of work", Quantity.PERIOD, partial(shares_period, problem))
    if problem.states():
        yield Proof("states", Quantity.PERIOD, partial(states_period, problem))
    yield Proof("traffic", Quantity.PERIOD, partial(traffic_period, problem))


def work_period(problem: Problem) -> Cycles:
    """Return the least period in which cores can run all tasks of an inference.

    Let K be a set of kinds and Q the tasks that no other kind can run. In each period the cores of
    K run all of Q, each core one task at a time, so ``period >= ceil(sum cycles(Q) / cores(K))``.
    Of the longest ``j * cores(K) + 1`` tasks of Q some core runs ``j + 1``, which take at least
    what the least ``j + 1`` of them take; ``j`` of 0 is the longest task.
    """
    present = {core.kind for core in problem.machine.cores}
    best, able = 1, [kinds_able(task.cycles) & present for task in problem.tasks]
    least = _least_cycles(problem)
    for kinds in unions(set(able)):
        cores = sum(core.kind in kinds for core in problem.machine.cores)
        some = (cycles for cycles, own in zip(least, able, strict=True) if own <= kinds)
        lengths = sorted(some, reverse=True)
        best = max([best, *lengths[:1]])
        if cores > 0:
            ends = range(0, len(lengths), cores)
            crowded = (sum(lengths[at - at // cores : at + 1]) for at in ends)
            best = max([best, -(-sum(lengths) // cores), *crowded])
    return best


def _least_cycles(problem: Problem) -> list[Cycles]:
    """Return the cycles of each task on the fastest kind that can run it and has cores, or any."""
    present = {core.kind for core in problem.machine.cores}
    return [
        min(task.cycles[kind] or 0 for kind in kinds_able(task.cycles) & present or some)
        if (some := kinds_able(task.cycles))
        else 0
        for task in problem.tasks
    ]


def shares_period(problem: Problem) -> Cycles:
    """Return the least period if tasks could be shared out among kinds of cores in any parts.

    Let ``x[t, k]`` be 1 if a core of kind ``k`` runs task ``t``, and 0 else. The sum over ``k`` is
    1, and ``sum over t of x[t, k] cycles[t, k] <= cores(k) * period``. The least period under these
    conditions, ``x`` between 0 and 1, is a linear program, in which tasks that are alike are one.
    """
    cores = Counter(core.kind for core in problem.machine.cores)
    alike = Counter(task.cycles for task in problem.tasks)
    able = {cycles: sorted(kinds_able(cycles) & set(cores)) for cycles in alike}
    if not all(able.values()):
        return 1
    program = LinearProgram()
    most = sum(count * max(c or 0 for c in cycles) for cycles, count in alike.items())
    period = program.variable(float(most), 1.0)
    work = {kind: [(period, float(count))] for kind, count in sorted(cores.items())}
    for cycles, count in alike.items():
        shares = {kind: program.variable(float(count)) for kind in able[cycles]}
        program.at_least(float(count), [(share, 1.0) for share in shares.values()])
        for kind, share in shares.items():
            work[kind].append((share, -float(cycles[kind] or 0)))
    for terms in work.values():
        program.at_least(0.0, terms)
    return max(1, proven_minimum(program, ITERATIONS))


def states_period(problem: Problem) -> Cycles:
    """Return the least period in which states come around in time.

    A task starts when those before it have ended, and what reads a state a period before its writer
    has ended, or later: in the next inference. So around each circle of tasks the cycles are at
    most the period for each state that it goes through. The least starts are found by passes over
    the tasks in their order, each of which takes longest paths through one more state. Where starts
    exist, these come to no writer of states twice: what still moves by then has none.
    """
    least, before, writers = _least_cycles(problem), problem.predecessors(), problem.writers()
    order, states = problem.topological_order(), problem.states()
    left: dict[int, set[int]] = {}
    for task in problem.tasks:
        read = (problem.slices[one].buffer for one in task.reads)
        found = (writers[states[one]] for one in read if one in states)
        left[task.index] = {writer for writer in found if writer is not None}
    passes = min(MOST_PASSES, len(set().union(*left.values())) + 2)

    def is_possible(period: Cycles) -> bool:
        start = [0] * len(order)
        for _ in range(passes):
            known = list(start)
            for task in order:
                earlier = [start[one] + least[one] for one in before[task]]
                earlier += [known[one] + least[one] - period for one in left[task]]
                start[task] = max([start[task], *earlier])
            if start == known:
                return True
        # Too few passes for so many states prove nothing.
        return passes == MOST_PASSES

    return bisect_left(range(sum(least)), True, lo=1, key=is_possible)


def traffic_period(problem: Problem) -> Cycles:
    """Return the least period in which what an inference must move can move.

    Take some memories ``outside``, in which no task reads or writes, and all others, which have
    ``room`` bytes in all. In each period P cross between them

    - what :func:`~spmilp.problem.loads.least_loads` says of stream data that starts outside, and
      results that must end there; each transfer holds a cut of links and a channel as in
      :class:`.DramTransfers`, at most rate times P and channels times P in all. A channel is busy
      with one transfer at a time, so none holds it for longer than P;
    - what it says of constants, unless they are permanent on this side: then they hold their bytes
      there in all P cycles.

    On this side lie in each period, each in bytes times cycles, at most ``room * P`` in all:

    - permanent constants, and other loads for as long as they take to get to where they are read,
      and while the task runs that reads them. (Several instances of a residency are of different
      inferences, and each inference has its own.)
    - the scratch and results of each task while it runs, save for results in place of operands;
      then such a result while the task with most to read of it runs, or while it is sent out.

    States count nothing: they may stay where they are read and written.

    Which constants are permanent is any choice, in parts: saving traffic is a fractional knapsack,
    solved exactly for each of the resources (Dantzig, Operations Research 5(2), 1957). If all of
    this is possible in a period, then in a longer one, too: the least one is found by halving.

    The memories outside are all DRAMs in which no core works; all memories but those in which tasks
    read and write; and each of the DRAMs (others are on this side then, with room for constants).
    """
    distances, memories = Distances(problem), {one.index for one in problem.machine.memories}
    drams = frozenset(dram.index for dram in problem.machine.drams) - distances.used
    sides = {drams, frozenset(memories) - distances.used}
    sides |= {frozenset((dram,)) for dram in drams}
    return max(
        (_Crossing(problem, distances, outside).period() for outside in sides if outside),
        default=1,
    )


class _Constant(NamedTuple):
    """A constant that is loaded in each period or permanent.

    ``uses`` are those of its load; it lies on this side for ``stays`` cycles at least if it is not
    permanent.
    """

    uses: tuple[Fraction, Fraction]
    bytes: Bytes
    stays: Cycles


class _Crossing:
    """What must cross between memories outside and all others, and what lies in the others."""

    def __init__(self, problem: Problem, distances: Distances, outside: Ends) -> None:
        machine = problem.machine
        self._problem, self._distances, self._outside = problem, distances, outside
        self._out, self._into, both = (
            DramTransfers(machine, outside, ways) for ways in ((True,), (False,), (True, False))
        )
        self._rates = [
            [gate.passages[number].rate for gate in (self._out, self._into, both)]
            for number in range(2)
        ]
        sizes = [one.usable for one in machine.memories if one.index not in outside]
        # Where there is no room at all, there is no plan.
        limited = [size for size in sizes if size is not None]
        self._room = (sum(limited) or None) if len(limited) == len(sizes) else None
        self._least = _least_cycles(problem)
        self._constants = Counter[_Constant]()
        # Links and channels that stream data holds on its way in and out; byte-cycles on this side.
        self._loads, self._stores = [Fraction(0), Fraction(0)], [Fraction(0), Fraction(0)]
        self._longest, self._area = Fraction(1), Fraction(0)
        states = problem.states()
        self._left = frozenset(states.values())
        for load in least_loads(problem):
            if load.buffer.starts_in in outside and load.buffer.index not in states:
                self._add_load(load)
        reads = self._bytes_times_reads()
        for task in problem.tasks:
            self._area += task.scratch * self._least[task.index]
            for written in task.writes:
                self._add_result(task, problem.buffers[written], reads[written])

    def period(self) -> Cycles:
        """Return the least period in which all of this is possible."""
        longest = 1
        while longest < LONGEST and not self._is_possible(longest):
            longest *= 2
        return bisect_left(range(longest), True, lo=longest // 2, key=self._is_possible)

    def _is_possible(self, period: Cycles) -> bool:
        if self._longest > period:
            return False
        for number, (out, into, both) in enumerate(self._rates):
            loaded = self._least_loaded(number, period)
            if loaded is None:
                return False
            loaded, stored = loaded + self._loads[number], self._stores[number]
            sides = ((loaded, out), (stored, into), (loaded + stored, both))
            # Of a rate of 0 nothing is known.
            if any(rate and use > rate * period for use, rate in sides):
                return False
        return True

    def _least_loaded(self, number: int, period: Cycles) -> Fraction | None:
        """Return the least use of constants that are not permanent; ``None`` if nothing fits."""
        if self._room is None:
            return Fraction(0)
        left, loaded = self._room * period - self._area, Fraction(0)
        choices = []
        for one, count in self._constants.items():
            passing = one.bytes * min(one.stays, period)
            left -= count * passing
            loaded += count * one.uses[number]
            choices.append((count * one.uses[number], count * (one.bytes * period - passing)))
        if left < 0:
            return None
        # What saves most for the room that it takes comes first.
        loaded -= sum(use for use, more in choices if more == 0)
        some = [choice for choice in choices if choice[1] > 0]
        for use, more in sorted(some, key=lambda choice: -choice[0] / choice[1]):
            loaded -= use * min(Fraction(1), left / more)
            left = max(Fraction(0), left - more)
        return loaded

    def _add_load(self, load: Load) -> None:
        uses = self._out.uses(load.bytes, load.share)
        stays = 0
        if load.share is not Share.REST:
            times = (self._passes(task, load.bytes) for task in load.readers)
            stays = max(times) if load.share is Share.ONE else min(times)
        if load.buffer.is_constant:
            self._constants[_Constant(uses, load.bytes, stays)] += 1
            return
        self._area += load.bytes * stays
        self._loads = [total + use for total, use in zip(self._loads, uses, strict=True)]
        if load.share is not Share.REST:
            self._longest = max(self._longest, uses[1])

    def _passes(self, task: int, size: Bytes) -> Cycles:
        """Return the least cycles from leaving the memories outside to the end of a reader."""
        targets = self._distances.readable(self._problem.tasks[task])
        return self._distances.cycles(self._outside, targets, size) + self._least[task]

    def _add_result(self, task: Task, result: Buffer, read: int) -> None:
        if all(over != result.index for _, over in task.in_place):
            self._area += result.bytes * self._least[task.index]
        sending = Fraction(0)
        if result.ends_in in self._outside and result.index not in self._left:
            uses = self._into.uses(result.bytes, Share.ONE)
            self._stores = [total + use for total, use in zip(self._stores, uses, strict=True)]
            self._longest = max(self._longest, uses[1])
            sending = self._into.uses(result.bytes, Share.REST)[1]
        self._area += max(Fraction(read), result.bytes * sending)

    def _bytes_times_reads(self) -> dict[BufferIdx, int]:
        """Return for each buffer the least bytes times cycles while tasks read it.

        Its slices lie there one by one, each during its longest reader, or some task reads in a
        residency of the whole.
        """
        longest: dict[BufferIdx, dict[SliceIdx, Cycles]] = defaultdict(dict)
        shortest: dict[BufferIdx, Cycles] = {}
        for task, own in zip(self._problem.tasks, self._least, strict=True):
            for read in task.reads:
                buffer = self._problem.slices[read].buffer
                longest[buffer][read] = max(own, longest[buffer].get(read, 0))
                shortest[buffer] = min(own, shortest.get(buffer, own))
        found = defaultdict[BufferIdx, int](int)
        for buffer, slices in longest.items():
            each = [self._problem.slices[one].bytes * own for one, own in slices.items()]
            whole = self._problem.buffers[buffer].bytes * shortest[buffer]
            found[buffer] = min(sum(each), max(whole, *each))
        return found
