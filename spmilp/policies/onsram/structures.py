"""The data structures that may be pinned, step by step, and what a choice of them costs."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from spmilp.policies.onsram.structure import Overwrite, Pins, Step, Structure
from spmilp.units import Bytes, Cycles


class Structures:
    """All structures that are worth pinning, and the steps.

    Parameters
    ----------
    capacities
        Blocks of the memory of each step; ``None`` without limit.
    is_of_time
        Whether pinning is to make the node time small, rather than the DRAM traffic.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        structures: Sequence[Structure],
        capacities: Sequence[int | None],
        *,
        is_of_time: bool,
    ) -> None:
        self.steps = tuple(steps)
        self.all = tuple(structures)
        self.is_of_time = is_of_time
        self._capacities = tuple(capacities)

    @cached_property
    def all_work(self) -> Cycles:
        """Cycles of all tasks."""
        return sum(step.work for step in self.steps)

    @cached_property
    def at_step(self) -> tuple[tuple[Structure, ...], ...]:
        """For each step the structures that live at it, in its memory."""
        found: list[list[Structure]] = [[] for _ in self.steps]
        for one in self.all:
            for step in one.extra:
                found[step].append(one)
        return tuple(map(tuple, found))

    def capacity(self, step: int) -> int | None:
        """Return the blocks of the memory of a step; ``None`` without limit."""
        return self._capacities[step]

    def chosen_overwrites(self, step: int, pins: Pins) -> tuple[Overwrite, ...]:
        """Return which results of a step take over which operands: as many blocks as can be."""
        able = [
            one
            for one in self.steps[step].overwrites
            if one.unless not in pins and one.only_if <= pins
        ]
        if len(able) < 2:
            return tuple(able)
        operands = sorted({one.position for one in able})
        results = sorted({one.buffer for one in able})
        shared = np.zeros((len(operands), len(results)), np.int64)
        pairs = {(operands.index(one.position), results.index(one.buffer)): one for one in able}
        for at, one in pairs.items():
            shared[at] = one.blocks
        rows, columns = linear_sum_assignment(shared, maximize=True)
        chosen = zip(rows.tolist(), columns.tolist(), strict=True)
        return tuple(pairs[at] for at in chosen if at in pairs)

    def used(self, step: int, pins: Pins, extra: int | None = None) -> int:
        """Return the blocks that are taken in the memory of a step while its task runs.

        Parameters
        ----------
        extra
            That pinned structures take above streamed ones, where it is known.
        """
        if extra is None:
            extra = sum(one.extra[step] for one in self.at_step[step] if one.index in pins)
        shared = sum(one.blocks for one in self.chosen_overwrites(step, pins))
        return self.steps[step].blocks + extra - shared

    def fits(self, step: int, pins: Pins, extra: int | None = None) -> bool:
        """Say whether all that lies in the memory of a step while its task runs has room."""
        capacity = self.capacity(step)
        return capacity is None or self.used(step, pins, extra) <= capacity

    def cost(self, pins: Pins) -> int:
        """Return what pinning is to make small: the node time if the makespan is, or traffic."""
        return self.node_time(pins) if self.is_of_time else self.traffic(pins)

    def node_time(self, pins: Pins) -> Cycles:
        """Return the sum over all tasks of their cycles or their transfers', the greater."""
        saved: dict[int, Cycles] = defaultdict(int)
        for index in pins:
            for step, saving in self.all[index].savings.items():
                saved[step] += saving.cycles
        return sum(
            max(step.work, step.moving - saved[number]) for number, step in enumerate(self.steps)
        )

    def traffic(self, pins: Pins) -> Bytes:
        """Return the bytes that cross the DRAM's port."""
        return sum(step.traffic for step in self.steps) - sum(
            self.all[index].saved_bytes for index in pins
        )
