"""OnSRAM, static: whole data structures pinned in the scratchpad, all others through DRAM.

Pal, Venkataramani, Srinivasan and Gopalakrishnan, "OnSRAM: Efficient Inter-Node On-Chip Scratchpad
Management in Deep Learning Accelerators", ACM TECS 2022, doi 10.1145/3530909. Its figure of merit
and its order are known here from a public re-implementation (gkeramidasCSD-Group/Scale-Sim-SPM)
that quotes them; the weights 0.4, 0.5 and 0.1 are taken from there.

What is taken: the breadth- or depth-first order by node class, the figure of merit, results that
overwrite an operand whose life ends, pinning for whole lives only, no eviction. A structure's life
includes its last use.

What the paper leaves open, or has otherwise, and what is done here:

- Its nodes are whole operators, here they are tasks. It never pins weights, which each have one
  reader there. Here a weight that several tiles read may be pinned like any other buffer; one with
  a single reader gains nothing and never is.
- A problem has no operations to count: cycles stand for them.
- It has one scratchpad. Here each scratchpad is managed by itself, cores get runs of neighbouring
  tiles, and what one core writes and another reads goes through DRAM.
- It gives no addresses. Here they are found by packing; where pinned structures have none together,
  the one with the least merit is not pinned.
- Streamed operands and results have room while their task runs, in the same scratchpad.

Not taken: machines without exactly one DRAM, cores that work in DRAM, data that begins or ends in a
scratchpad, and buffers without a transfer straight between DRAM and scratchpad.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import OneAfterAnother, Policy, Setting
from spmilp.policies.structures import Pins, Structure, Structures, TaskStructures, own_order
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.units import BufferIdx, MemoryIdx

ALPHA, BETA, GAMMA = 0.4, 0.5, 0.1
"""Weights of the three parts of the figure, as published."""


def figure_of_merit(structures: Structures, one: Structure) -> float:
    """Return how much a structure is worth its place; its size is no part of it.

    ``ALPHA * tasks / unused`` for a short life with many uses, ``BETA`` times the sum over its
    tasks of ``1 / reuse`` for tasks that do little with each element, and ``GAMMA`` times the share
    of its tasks in the work of all. The unused steps are counted with one more, for no figure is
    divided by 0. The reuse of an element in a task is taken to be the cycles of the task for each
    cycle of the structure's transfer, at least 1; the work of a task is its cycles.
    """
    unused = len(one.extra) - len(one.uses)
    work = {step: structures.steps[step].work for step in one.uses}
    reuses = [max(1.0, own / max(1, one.moving.get(step, own))) for step, own in work.items()]
    return (
        ALPHA * len(one.uses) / (unused + 1)
        + BETA * sum(1.0 / reuse for reuse in reuses)
        + GAMMA * (sum(work.values()) / structures.all_work)
    )


def by_merit(structures: Structures) -> tuple[int, ...]:
    """Return the structures, the one with the greatest figure first."""
    figures = {one.index: figure_of_merit(structures, one) for one in structures.all}
    return tuple(sorted(figures, key=lambda index: (-figures[index], index)))


def pinned_in_turn(structures: Structures, order: Iterable[int]) -> Pins:
    """Return what is pinned if each structure is that has room for its whole life when it comes."""
    pins = Pins()
    taken: Counter[int] = Counter()
    for index in order:
        more, extra = pins | {index}, structures.all[index].extra
        if all(structures.fits(step, more, taken[step] + own) for step, own in extra.items()):
            pins = more
            taken.update(extra)
    return pins


class Pinning(Policy):
    """Pins some structures for their whole lives, with tasks in OnSRAM's order."""

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of what is pinned.

        Of structures that have no addresses together the last one is left out from then on.
        """
        setting = Setting(context.problem, self.name)
        structures = TaskStructures(setting, own_order(setting))
        structures.demand_room(self.name)
        order, chosen = self.choice(structures)
        while True:
            pins = chosen(order)
            plan = _taken_down(structures, pins).plan()
            if isinstance(plan, Plan):
                break
            items = (item for item in plan.items if isinstance(item, CandidateResidency))
            rivals = {_pinned(structures, item.slice, item.memory, pins) for item in items} - {None}
            if not rivals:
                name = context.problem.name
                return context.unknown(f"{name}: no addresses, even with nothing pinned")
            last = next(index for index in reversed(order) if index in rivals)
            order = tuple(index for index in order if index != last)
        options = (("pinned", str(len(pins))), ("candidates", str(len(structures.all))))
        return self.answer(context, plan, options)

    @abstractmethod
    def choice(
        self, structures: TaskStructures
    ) -> tuple[Sequence[int], Callable[[Sequence[int]], Pins]]:
        """Return an order of structures, and what is pinned if they come in an order."""


def _taken_down(structures: TaskStructures, pins: Pins) -> OneAfterAnother:
    """Write down each step's loads, each once, its task and its stores."""
    setting, written = structures.setting, OneAfterAnother(structures.setting)
    held: dict[int, CandidateResidency] = {}
    for number, step in enumerate(structures.steps):
        streamed: dict[int, CandidateResidency] = {}
        operands = []
        for holder in step.holders:
            buffer = setting.buffer_of(holder)
            pinned = _pinned(structures, buffer, step.memory, pins)
            there, index = (streamed, holder) if pinned is None else (held, pinned)
            if index not in there:
                there[index] = written.load(holder if pinned is None else buffer, step.memory)
            operands.append(there[index])
        results = written.run(step.task, operands)
        for one in structures.overwrites(number, pins):
            written.overwrite(step.task, operands[one.position], results[one.buffer])
        for buffer in structures.writes(number):
            pinned = _pinned(structures, buffer, step.memory, pins)
            if pinned is not None:
                held[pinned] = results[buffer]
            if buffer in structures.stored or (buffer in structures.read and pinned is None):
                written.store(results[buffer])
    return written


def _pinned(among: TaskStructures, buffer: BufferIdx, memory: MemoryIdx, pins: Pins) -> int | None:
    """Return the structure of a buffer in a memory if it is pinned."""
    found = among.find(buffer, memory)
    return found if found in pins else None


class OnSram(Pinning):
    """Pins data structures in scratchpads for their whole lives; the rest goes through DRAM."""

    name = "onsram"

    def choice(
        self, structures: TaskStructures
    ) -> tuple[Sequence[int], Callable[[Sequence[int]], Pins]]:
        """Return the order by merit, in which each is pinned that has room."""
        return by_merit(structures), partial(pinned_in_turn, structures)
