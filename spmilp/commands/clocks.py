"""Vector clocks: how far every list has come when an activity ends, whatever the delays."""

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.commands.activities import Activities, Activity

Clock: TypeAlias = NDArray[np.int32]
"""For each list that is not empty, how many of its activities have ended for certain."""


class Clocks:
    """The clocks of the activities that are still asked for.

    A clock has a number for each list, so that those of all activities would fill a machine of
    thousands of cores; each is dropped after its last use.
    """

    def __init__(self, activities: Activities, before: Sequence[Collection[Activity]]) -> None:
        self._activities = activities
        self._before = before
        used = [index for index, mine in enumerate(activities.lists) if mine]
        self._column = {index: column for column, index in enumerate(used)}
        self._uses = [0] * len(activities.order)
        for mine in activities.lists:
            for earlier in mine[:-1]:
                self._uses[earlier] += 1
        for predecessors in before:
            for earlier in predecessors:
                self._uses[earlier] += 1
        self._clocks: dict[Activity, Clock] = {}

    def before_start(self, activity: Activity) -> Clock:
        """Return what the order of its list alone says when an activity starts."""
        position = self._activities.position[activity]
        if position == 0:
            return np.zeros(len(self._column), dtype=np.int32)
        previous = self._activities.lists[self._activities.list_of[activity]][position - 1]
        clock = self._clocks[previous].copy()
        self._release(previous)
        return clock

    def covers(self, clock: Clock, activity: Activity) -> bool:
        """Say whether an activity has ended for certain at a clock."""
        column = self._column[self._activities.list_of[activity]]
        return bool(clock[column] > self._activities.position[activity])

    def wait_for(self, clock: Clock, earlier: Activity) -> None:
        """Add to a clock what is known once an activity has ended."""
        np.maximum(clock, self._clocks[earlier], out=clock)

    def end(self, activity: Activity, clock: Clock) -> None:
        """Note the clock of an activity at its end; what it came after is not asked for again."""
        column = self._column[self._activities.list_of[activity]]
        clock[column] = self._activities.position[activity] + 1
        if self._uses[activity]:
            self._clocks[activity] = clock
        for earlier in self._before[activity]:
            self._release(earlier)

    def at_each_end(self) -> Iterator[tuple[Activity, Clock]]:
        """Yield each activity with the clock at its end."""
        for activity in self._activities.order:
            clock = self.before_start(activity)
            for earlier in self._before[activity]:
                self.wait_for(clock, earlier)
            self.end(activity, clock)
            yield activity, clock

    def _release(self, activity: Activity) -> None:
        self._uses[activity] -= 1
        if self._uses[activity] == 0:
            del self._clocks[activity]
