"""The CP-SAT model of a window: new start cycles, by which all behind the window moves left."""

from typing import NamedTuple, TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.lns.window import (
    Claim,
    Window,
    WindowResidency,
    WindowSolution,
    handovers,
)
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx

Time: TypeAlias = cp_model.LinearExprT


class Held(NamedTuple):
    """So much of something, held during an interval that may be optional."""

    interval: cp_model.IntervalVar
    amount: int


class ExtraUse(NamedTuple):
    """A residency that may be used until some end, besides what the schedule says.

    ``old`` is that end before, from the window's start on; ``None`` where it was not used so.
    """

    literal: cp_model.IntVar
    finish: Time
    old: Cycles | None


class WindowModel:
    """Start cycles of a window's activities, from the window's start on, and what they save.

    A model that decides more (:meth:`_decide`) says what that may hold of resources and memories,
    and how long residencies may be used for it.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.cp = cp_model.CpModel()
        self.end = window.end - window.start
        most = max(0, window.end - max(window.first, window.running))
        self.saved = self.cp.new_int_var(0, most, "")
        self.starts = {activity: self._start_of(activity) for activity in window.inside}
        self._hints: list[tuple[cp_model.IntVar, int]] = []
        self._intervals: dict[int, cp_model.IntervalVar] = {}
        self._ordered: set[tuple[int, int]] = set()
        self._extra_on: dict[int, list[Held]] = {}
        self._extra_in: dict[MemoryIdx, list[Held]] = {}
        self._extra_uses: dict[ResidencyIdx, list[ExtraUse]] = {}
        self._decide()
        self._precedences_hold()
        self._resources_suffice()
        self._memories_suffice()
        self.cp.maximize(self.saved)

    def add_hint(self) -> None:
        """Let the solver begin with the old times."""
        self._hint(self.saved, 0)
        for activity, start in self.starts.items():
            self._hint(start, self.window.old[activity] - self.window.start)
        for variable, value in self._hints:
            self.cp.add_hint(variable, value)

    def solution(self, solver: cp_model.CpSolver) -> WindowSolution:
        """Return what a solver has found."""
        saved = solver.value(self.saved)
        starts = map(solver.value, self.starts.values()) if saved > 0 else ()
        return WindowSolution(saved, tuple(starts))

    def _decide(self) -> None:
        """Decide what else there is to decide; nothing here."""

    def _hint(self, variable: cp_model.IntVar, value: int) -> None:
        self._hints.append((variable, value))

    def _start_of(self, activity: int) -> cp_model.IntVar:
        window, cycles = self.window, self.window.cycles[activity]
        end = min(self.end, window.latest_end(activity) - window.start)
        first = max(0, window.earliest_start(activity) - window.start)
        start = self.cp.new_int_var(first, end - cycles, "")
        self.cp.add(start + cycles + self.saved <= end)
        return start

    def _begin(self, activity: int) -> Time:
        """Return the start of an activity; those behind the window move left by what is saved."""
        window = self.window
        if activity in self.starts:
            return self.starts[activity]
        old = window.old[activity] - window.start
        return old if window.is_before[activity] else old - self.saved

    def _finish(self, activity: int) -> Time:
        return self._begin(activity) + self.window.cycles[activity]

    def _precede(self, first: int, second: int, *, by_end: bool = False) -> None:
        """Let the first activity end before the second starts, or (``by_end``) before it ends.

        Two of which none is inside, on the same side of the window, keep their order anyway.
        """
        window = self.window
        move_alike = window.is_before[first] == window.is_before[second]
        are_inside = window.is_inside[first] or window.is_inside[second]
        if first == second or (move_alike and not are_inside):
            return
        if by_end:
            self.cp.add(self._finish(first) <= self._finish(second))
        elif (first, second) not in self._ordered:
            self._ordered.add((first, second))
            self.cp.add(self._finish(first) <= self._begin(second))

    def _precedences_hold(self) -> None:
        """By data, by bytes overwritten in place, by the tasks' own order, and by bytes in DRAM."""
        window, schedule = self.window, self.window.schedule
        kept = window.context.kept_reuse
        for one in window.near:
            for residency in schedule.fills.values(one):
                overwritten = window.overwrites[residency]
                olds = [*kept.earlier.values(residency)]
                for old in [*olds, overwritten] if overwritten >= 0 else olds:
                    for other in window.touching(old):
                        self._precede_if_run(other, one)
                for reader in schedule.readers.values(residency):
                    self._precede_if_run(one, reader)
            for residency in schedule.reads.values(one):
                if window.filler[residency] >= 0:
                    self._precede_if_run(window.filler[residency], one)
                if window.overwritten_by[residency] >= 0:
                    self._precede_if_run(one, window.filler[window.overwritten_by[residency]])
            for residency in window.touched(one):
                for new in kept.later.values(residency):
                    self._precede_if_run(one, window.filler[new])
            for other in schedule.before.values(one):
                self._precede_if_run(other, one)
            for other in schedule.after.values(one):
                self._precede_if_run(one, other)

    def _precede_if_run(self, first: int, second: int) -> None:
        if self.window.cycles[first] and self.window.cycles[second]:
            self._precede(first, second)

    def _resources_suffice(self) -> None:
        """Cores, channels and links carry no more than they can."""
        window, schedule = self.window, self.window.schedule
        begin, items = schedule.demands
        holders: dict[int, list[tuple[int, int]]] = {}
        for activity in window.near:
            for entry in range(int(begin[activity]), int(begin[activity + 1])):
                holder = activity, int(schedule.amounts[entry])
                holders.setdefault(int(items[entry]), []).append(holder)
        for resource in {**holders, **self._extra_on}:
            capacity, users = int(schedule.capacity[resource]), holders.get(resource, [])
            extra = self._extra_on.get(resource, [])
            if sum(amount for _, amount in (*users, *extra)) > capacity:
                self._resource_suffices(users, extra, capacity)

    def _resource_suffices(
        self, users: list[tuple[int, int]], extra: list[Held], capacity: int
    ) -> None:
        """Those outside the window hand on a resource in the old order; the others find room."""
        window = self.window
        kept = [(one, amount) for one, amount in users if not window.is_inside[one]]
        kept.sort(key=lambda pair: window.old[pair[0]])
        claims = [Claim(window.old[one], window.old_end(one), amount) for one, amount in kept]
        for first, second in handovers(claims, capacity):
            self._precede(kept[first][0], kept[second][0])
        if len(kept) == len(users) and not extra:
            return
        held = [Held(self._interval(activity), amount) for activity, amount in users] + extra
        if all(2 * one.amount > capacity for one in held):
            self.cp.add_no_overlap([one.interval for one in held])
        else:
            self._add_cumulative(held, capacity)

    def _add_cumulative(self, held: list[Held], capacity: int) -> None:
        intervals, amounts = [one.interval for one in held], [one.amount for one in held]
        self.cp.add_cumulative(intervals, amounts, capacity)

    def _interval(self, activity: int) -> cp_model.IntervalVar:
        if activity not in self._intervals:
            begin, cycles = self._begin(activity), self.window.cycles[activity]
            self._intervals[activity] = self.cp.new_fixed_size_interval_var(begin, cycles, "")
        return self._intervals[activity]

    def _memories_suffice(self) -> None:
        """The bytes in use fit at every cycle, at whatever addresses."""
        window = self.window
        touched = (residency for activity in window.near for residency in window.touched(activity))
        # As a dictionary, for the order in which they are met.
        memories = (int(window.schedule.memory[one]) for one in touched)
        for memory in dict.fromkeys([*memories, *self._extra_in]):
            capacity = int(window.context.usable[memory])
            if capacity == NEVER:
                continue
            residencies = window.residencies(memory)
            extra = self._extra_in.get(memory, [])
            if sum(one.bytes for one in residencies) + sum(size for _, size in extra) > capacity:
                self._memory_suffices(residencies, extra, capacity)

    def _memory_suffices(
        self, residencies: list[WindowResidency], extra: list[Held], capacity: Bytes
    ) -> None:
        """Residencies that nothing inside touches hand on their bytes in the old order."""
        window = self.window
        kept = [
            one
            for one in residencies
            if not any(window.is_inside[other] for other in window.touching(one.residency))
            and one.residency not in self._extra_uses
        ]
        claims = [Claim(one.begin, one.end, one.bytes) for one in kept]
        for first, second in handovers(claims, capacity):
            old, new = kept[first].residency, kept[second].residency
            for other in window.touching(old):
                self._precede(other, window.filler[new], by_end=window.overwrites[new] >= 0)
        if len(kept) < len(residencies) or extra:
            held = [Held(self._lifetime(one), one.bytes) for one in residencies]
            self._add_cumulative(held + extra, capacity)

    def _lifetime(self, residency: WindowResidency) -> cp_model.IntervalVar:
        """Return when a residency is there; what overwrites bytes, from the end of its writer."""
        window, cp = self.window, self.cp
        filler = window.filler[residency.residency]
        begin: Time = 0
        if filler >= 0:
            overwrites = window.overwrites[residency.residency] >= 0
            begin = self._finish(filler) if overwrites else self._begin(filler)
        if isinstance(begin, int):
            begin = max(begin, 0)
        until = self._until(residency)
        if isinstance(begin, int) and isinstance(until, int):
            return cp.new_fixed_size_interval_var(begin, until - begin, "")
        length = cp.new_int_var(0, self.end, "")
        self._hint(length, self._old_until(residency) - residency.begin + window.start)
        return cp.new_interval_var(begin, length, until, "")

    def _until(self, residency: WindowResidency) -> Time:
        """Return the end of a residency, or of the window if that comes first."""
        window, cp, end = self.window, self.cp, self.end
        touching = window.touching(residency.residency)
        inside = [one for one in touching if window.is_inside[one]]
        before = [one for one in touching if window.is_before[one]]
        behind = [one for one in touching if not (window.is_inside[one] or window.is_before[one])]
        earliest = max(map(window.old_end, before), default=0) - window.start
        latest = max(map(window.old_end, behind), default=0) - window.start
        if window.schedule.lasting[residency.residency] or latest >= end:
            return end - self.saved
        uses = self._extra_uses.get(residency.residency, [])
        if not inside and not behind and not uses:
            return min(earliest, end)
        if not inside and not before and not uses:
            return latest - self.saved
        until = cp.new_int_var(max(0, min(earliest, end)), end, "")
        self._hint(until, self._old_until(residency))
        for use in uses:
            cp.add(until >= use.finish).only_enforce_if(use.literal)
        for one in inside:
            cp.add(until >= self._finish(one))
        if behind:
            cp.add(until >= latest - self.saved)
        return until

    def _old_until(self, residency: WindowResidency) -> Cycles:
        """Return the end of a residency before, or of the window, from the window's start on."""
        uses = self._extra_uses.get(residency.residency, [])
        old = [use.old for use in uses if use.old is not None]
        end = max(residency.begin, min(residency.end, self.window.end)) - self.window.start
        return max(end, *old, 0)


def solver_of_one_window(
    seed: int, deterministic_time: float, seconds: float | None
) -> cp_model.CpSolver:
    """Return a solver with one worker that is given the model of one window.

    Parameters
    ----------
    deterministic_time
        Limit in CP-SAT's own unit, which does not depend on the computer.
    seconds
        Limit of wall time; ``None`` without one.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_time
    # Relaxations cost more than what they prune: times follow from orders.
    solver.parameters.linearization_level = 0
    solver.parameters.catch_sigint_signal = False
    if seconds is not None:
        solver.parameters.max_time_in_seconds = seconds
    return solver
