"""Which structures to pin, exactly: a 0/1 program, solved through PuLP.

A variable for each structure says whether it is pinned, another one for each result whether it
takes over the bytes of an operand. At each step what is pinned and what the task streams fit the
memory of its core. What is made small is the sum over all tasks of their cycles or those of their
transfers, the greater, if the makespan is the problem's first quantity; else DRAM traffic.
"""

from collections import defaultdict
from collections.abc import Sequence

from spmilp.policies.onsram.structure import Overwrite, Pins
from spmilp.policies.onsram.structures import Structures
from spmilp.solvers.milp.process import backend_name, run
from spmilp.solvers.milp.program import Limits, Linear, Program, total


class PinningProgram:
    """The program of a sequence's structures.

    Parameters
    ----------
    apart
        Sets of structures of which not all are to be pinned, for they had no addresses together.
    """

    def __init__(self, structures: Structures, apart: Sequence[Pins] = ()) -> None:
        self._structures = structures
        self.program = Program()
        self._pinned = [self.program.binary(f"pinned_{one.index}") for one in structures.all]
        for step in range(len(structures.steps)):
            self._memories_suffice(step)
        for some in apart:
            self.program.at_most(total(self._pinned[one] for one in some), len(some) - 1)
        if structures.is_of_time:
            self._minimise_node_time()
        else:
            self._minimise_traffic()

    def solve(self, limits: Limits) -> Pins | None:
        """Return the best set that was found within the limits; ``None`` without any."""
        outcome = run(self.program, backend_name("highs"), limits)
        if outcome.values is None:
            return None
        chosen = (
            one.index
            for one in self._structures.all
            if all(outcome.values[index] > 0.5 for index in self._pinned[one.index].terms)
        )
        return frozenset(chosen)

    def _memories_suffice(self, number: int) -> None:
        """At each step at which pinning everything would take too much."""
        structures, step = self._structures, self._structures.steps[number]
        capacity = structures.capacity(number)
        if capacity is None:
            return
        pinned = [one.extra[number] * self._pinned[one.index] for one in structures.at_step[number]]
        if step.blocks + self.program.high(total(pinned)) <= capacity:
            return
        shared = self._overwritten_blocks(step.overwrites)
        self.program.at_most(total((step.blocks, *pinned, shared * -1)), capacity)

    def _overwritten_blocks(self, able: Sequence[Overwrite]) -> Linear:
        """Return the blocks that count once; each operand and each result has one partner."""
        partners: dict[tuple[str, int], list[Linear]] = defaultdict(list)
        parts = []
        for one in able:
            happens = self.program.binary("overwrites")
            partners["operand", one.position].append(happens)
            partners["result", one.buffer].append(happens)
            if one.unless is not None:
                self.program.at_most(happens + self._pinned[one.unless], 1)
            for needed in one.only_if:
                self.program.at_most(happens - self._pinned[needed], 0)
            parts.append(one.blocks * happens)
        for some in partners.values():
            self.program.at_most(total(some), 1)
        return total(parts)

    def _minimise_node_time(self) -> None:
        saved: dict[int, list[Linear]] = defaultdict(list)
        for one in self._structures.all:
            for number, saving in one.savings.items():
                saved[number].append(saving.cycles * self._pinned[one.index])
        times = []
        for number, step in enumerate(self._structures.steps):
            moving = step.moving - total(saved[number])
            time = self.program.number(
                f"time_{number}", step.work, max(step.work, self.program.high(moving))
            )
            self.program.at_least(time, moving)
            times.append(time)
        self.program.objective = total(times)

    def _minimise_traffic(self) -> None:
        traffic = sum(step.traffic for step in self._structures.steps)
        saved = (one.saved_bytes * self._pinned[one.index] for one in self._structures.all)
        self.program.objective = traffic - total(saved)
