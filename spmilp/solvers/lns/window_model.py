"""The CP-SAT model of a window: times are decided, so that all behind can move to the left."""

from hashlib import sha256
from typing import TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.lns.kept_order import Claim, handovers
from spmilp.solvers.lns.known import Answer
from spmilp.solvers.lns.window import Window

Time: TypeAlias = cp_model.LinearExprT


class WindowModel:
    """Start cycles of a window's activities, and how many cycles it saves.

    Cycles are counted from the window's start, and all is added in the order of the old times, so
    that equal windows have equal models, wherever they are and on whichever cores.
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
        self._followed: set[tuple[int, int]] = set()
        self._activities_follow_each_other()
        self._resources_suffice()
        self.cp.maximize(self.saved)

    def fingerprint(self) -> bytes:
        """Return what equal models have in common, without hints."""
        return sha256(str(self.cp.proto).encode()).digest()

    def hint(self, variable: cp_model.IntVar, value: int) -> None:
        """Note a value at the old times."""
        self._hints.append((variable, value))

    def begin_with_old_times(self) -> None:
        """Let the solver know the times as they are."""
        self.hint(self.saved, 0)
        for activity, start in self.starts.items():
            self.hint(start, self.window.old[activity] - self.window.start)
        for variable, value in self._hints:
            self.cp.add_hint(variable, value)

    def answer(self, solver: cp_model.CpSolver) -> Answer:
        """Return what a solver has found."""
        saved = solver.value(self.saved)
        starts = map(solver.value, self.starts.values()) if saved > 0 else ()
        return Answer(saved, tuple(starts))

    def begin(self, activity: int) -> Time:
        """Return the start of an activity."""
        window = self.window
        if activity in self.starts:
            return self.starts[activity]
        old = window.old[activity] - window.start
        return old if window.is_before[activity] else old - self.saved

    def finish(self, activity: int) -> Time:
        """Return the end of an activity."""
        return self.begin(activity) + self.window.cycles[activity]

    def must_follow(self, first: int, second: int, *, by_end: bool = False) -> None:
        """Let the first activity end before the second starts, or (``by_end``) before it ends.

        Those that move together keep their order anyway.
        """
        window = self.window
        move_alike = window.is_before[first] == window.is_before[second]
        are_inside = window.is_inside[first] or window.is_inside[second]
        if first == second or (move_alike and not are_inside):
            return
        if by_end:
            self.cp.add(self.finish(first) <= self.finish(second))
        elif (first, second) not in self._followed:
            self._followed.add((first, second))
            self.cp.add(self.finish(first) <= self.begin(second))

    def _start_of(self, activity: int) -> cp_model.IntVar:
        cycles = self.window.cycles[activity]
        start = self.cp.new_int_var(0, self.end - cycles, "")
        self.cp.add(start + cycles + self.saved <= self.end)
        return start

    def _activities_follow_each_other(self) -> None:
        """By data, by bytes that are taken over, by the tasks' own order, and in DRAM by bytes."""
        window, draft, kept = self.window, self.window.draft, self.window.ground.kept
        for one in window.near:
            for held in window.row(draft.fills, one):
                parent = window.parent[held]
                olds = [*window.row(kept.earlier, held), *([parent] if parent >= 0 else [])]
                for other in (other for old in olds for other in window.touching(old)):
                    self._follow(other, one)
                for user in window.row(draft.users, held):
                    self._follow(one, user)
            for held in window.row(draft.reads, one):
                if window.filler[held] >= 0:
                    self._follow(window.filler[held], one)
                if window.heir[held] >= 0:
                    self._follow(one, window.filler[window.heir[held]])
            for held in (*window.row(draft.fills, one), *window.row(draft.reads, one)):
                for new in window.row(kept.later, held):
                    self._follow(one, window.filler[new])
            for other in window.row(draft.before, one):
                self._follow(other, one)
            for other in window.row(draft.after, one):
                self._follow(one, other)

    def _follow(self, first: int, second: int) -> None:
        if self.window.cycles[first] and self.window.cycles[second]:
            self.must_follow(first, second)

    def _resources_suffice(self) -> None:
        """Cores, channels and links carry no more than they can."""
        window, draft = self.window, self.window.draft
        begin, items = draft.demands
        held: dict[int, list[tuple[int, int]]] = {}
        for activity in window.near:
            for entry in range(int(begin[activity]), int(begin[activity + 1])):
                held.setdefault(int(items[entry]), []).append((activity, int(draft.amounts[entry])))
        for resource, users in held.items():
            capacity = int(draft.capacity[resource])
            if sum(amount for _, amount in users) > capacity:
                self._order_is_kept(users, capacity)
                if any(window.is_free[activity] for activity, _ in users):
                    self._resource_suffices(users, capacity)

    def _order_is_kept(self, users: list[tuple[int, int]], capacity: int) -> None:
        """Let those that are not free hand on a resource in the old order."""
        window = self.window
        kept = [(one, amount) for one, amount in users if not window.is_free[one]]
        kept.sort(key=lambda pair: window.old[pair[0]])
        claims = [Claim(window.old[one], window.old_end(one), amount) for one, amount in kept]
        for first, second in handovers(claims, capacity):
            self.must_follow(kept[first][0], kept[second][0])

    def _resource_suffices(self, users: list[tuple[int, int]], capacity: int) -> None:
        intervals = [self._interval(activity) for activity, _ in users]
        if all(2 * amount > capacity for _, amount in users):
            self.cp.add_no_overlap(intervals)
        else:
            self.cp.add_cumulative(intervals, [amount for _, amount in users], capacity)

    def _interval(self, activity: int) -> cp_model.IntervalVar:
        if activity not in self._intervals:
            cycles = self.window.cycles[activity]
            begin = self.begin(activity)
            self._intervals[activity] = self.cp.new_fixed_size_interval_var(begin, cycles, "")
        return self._intervals[activity]
