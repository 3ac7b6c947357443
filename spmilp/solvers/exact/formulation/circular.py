"""Resources of a stream: each inference holds them as the one before did, a period later."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from ortools.sat.python import cp_model

from spmilp.plan.plan import MOST_INSTANCES
from spmilp.units import Cycles


class CircularModel(cp_model.CpModel):
    """A constraint program whose resources are those of a period, which is a constant.

    What starts at the cycle ``s`` of its inference starts at ``r`` of a period, ``s = r + P * q``
    (modulo scheduling: Rau, MICRO 1994; with constraints: Bonfietti et al., Artificial Intelligence
    206, 2014). Resources see its interval at ``r``, ``r - P`` and so on, as far as these reach into
    the period: there the inferences before are still at it. No interval with a start to choose
    lasts more than ``MOST_INSTANCES`` periods; one without is there for ever.

    ``q`` is a sum of literals, for nothing else has to be whole in a MILP. Of what is alike (cores,
    channels) each interval gets one, for on a circle they may need more than ever overlap;
    ``taken`` has for each interval whether it has each of them.
    """

    def __init__(self, period: Cycles) -> None:
        super().__init__()
        self._period = period
        self._true = self.new_constant(1)
        self._within: dict[int, Any] = {}
        self._turned: dict[int, list[Any]] = {}
        self.taken: dict[int, list[Any]] = {}

    def add_no_overlap(self, intervals: Iterable[Any]) -> Any:
        """Let intervals hold a resource one at a time."""
        return super().add_no_overlap([turn for one in intervals for turn in self._turns(one)])

    def add_cumulative(
        self, intervals: Iterable[Any], demands: Iterable[Any], capacity: Any
    ) -> Any:
        """Let intervals hold no more than a capacity at any time."""
        held = [
            (turn, demand)
            for one, demand in zip(intervals, demands, strict=True)
            for turn in self._turns(one)
        ]
        turns, amounts = [turn for turn, _ in held], [demand for _, demand in held]
        return super().add_cumulative(turns, amounts, capacity)

    def share_out(self, intervals: Iterable[Any], count: int) -> None:
        """Give each interval one of several resources that are alike.

        The first interval gets the first one, the second one of the first two, and so on.
        """
        turns: list[list[Any]] = [[] for _ in range(count)]
        for place, one in enumerate(intervals):
            mine = self.taken[one.index] = [
                self.new_bool_var(f"{one.name} on {number}")
                for number in range(min(place + 1, count))
            ]
            self.add(sum(mine) == self._present(one))
            for number, literal in enumerate(mine):
                turns[number] += self._turns(one, literal)
        for some in turns:
            super().add_no_overlap(some)

    def _present(self, interval: Any) -> Any:
        return (*interval.presence_literals(), self._true)[0]

    def _turns(self, interval: Any, present: Any = None) -> list[Any]:
        """Return the intervals as which one reaches into the period, with a literal of its own."""
        if present is not None:
            return self._made(interval, present)
        if interval.index not in self._turned:
            self._turned[interval.index] = self._made(interval, self._present(interval))
        return self._turned[interval.index]

    def _made(self, interval: Any, present: Any) -> list[Any]:
        span, period, name = interval.proto.interval, self._period, interval.name
        if not span.start.vars:
            return [self.new_optional_fixed_size_interval_var(0, period, present, name)]
        first = self._residue(span.start.vars[0]) + span.start.offset
        size: Any = span.size.offset
        longest, end = size, first + size
        if span.size.vars:
            longest, size = MOST_INSTANCES * period, interval.size_expr()
            last = period + span.start.offset + longest
            end = self.new_int_var(0, last, f"{name} ends in a period")
        turns = range((period - 2 + span.start.offset + longest) // period + 1)
        return [
            self.new_optional_interval_var(
                first - turn * period, size, end - turn * period, present, f"{name} turn{turn}"
            )
            for turn in turns
        ]

    def _residue(self, index: int) -> Any:
        """Return at which cycle of a period a variable is."""
        if index not in self._within:
            variable = self.get_int_var_from_proto_index(index)
            stages = [
                self.new_bool_var(f"{variable.name} stage{stage}")
                for stage in range(1, 1 + max(variable.proto.domain) // self._period)
            ]
            for one, following in pairwise(stages):
                self.add_implication(following, one)
            within = self.new_int_var(0, self._period - 1, f"{variable.name} in a period")
            self.add(variable == within + self._period * sum(stages))
            self._within[index] = within
        return self._within[index]
