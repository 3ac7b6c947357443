"""The CP-SAT model of a window: times are decided, so that all behind can move to the left."""

from typing import TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.list_scheduler.records import NEVER
from spmilp.solvers.lns.window import Window

Time: TypeAlias = cp_model.LinearExprT


class WindowModel:
    """Start cycles of a window's activities, and how many cycles it saves."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.cp = cp_model.CpModel()
        most = max(0, window.end - max(window.first, window.running))
        self.saved = self.cp.new_int_var(0, most, "saved")
        self.cp.add_hint(self.saved, 0)
        self.starts = {activity: self._start_of(activity) for activity in window.free}
        self._intervals: dict[int, cp_model.IntervalVar] = {}
        self._activities_follow_each_other()
        self._resources_suffice()
        self._memories_suffice()
        self.cp.maximize(self.saved)

    def _start_of(self, activity: int) -> cp_model.IntVar:
        window = self._window
        last = window.end - window.cycles[activity]
        start = self.cp.new_int_var(window.start, last, f"start {activity}")
        self.cp.add_hint(start, window.late[activity])
        self.cp.add(start + window.cycles[activity] + self.saved <= window.end)
        return start

    def _begin(self, activity: int) -> Time:
        window = self._window
        if activity in self.starts:
            return self.starts[activity]
        if window.is_before[activity]:
            return window.early[activity]
        return window.late[activity] - self.saved

    def _end(self, activity: int) -> Time:
        return self._begin(activity) + self._window.cycles[activity]

    def _activities_follow_each_other(self) -> None:
        """By data, by bytes that are taken over, by the tasks' own order, and in DRAM by bytes."""
        window, draft, kept = self._window, self._window.draft, self._window.ground.kept
        pairs: set[tuple[int, int]] = set()
        for one in window.near:
            for held in window.row(draft.fills, one):
                pairs.update((one, user) for user in window.row(draft.users, held))
                pairs.update((one, window.filler[new]) for new in window.row(kept.later, held))
            for held in window.row(draft.reads, one):
                if window.filler[held] >= 0:
                    pairs.add((window.filler[held], one))
                if window.heir[held] >= 0:
                    pairs.add((one, window.filler[window.heir[held]]))
                pairs.update((one, window.filler[new]) for new in window.row(kept.later, held))
            for held in window.row(draft.fills, one):
                olds = [*window.row(kept.earlier, held)]
                olds += [window.parent[held]] if window.parent[held] >= 0 else []
                pairs.update((other, one) for old in olds for other in window.touching(old))
            pairs.update((other, one) for other in window.row(draft.before, one))
            pairs.update((one, other) for other in window.row(draft.after, one))
        for first, second in sorted(pairs):
            if first != second and window.cycles[first] and window.cycles[second]:
                self._must_follow(first, second)

    def _must_follow(self, first: int, second: int) -> None:
        """Add the order of two activities, unless it is that of two that move together."""
        window = self._window
        before = [bool(window.is_before[one]) for one in (first, second)]
        free = [window.is_free(one) for one in (first, second)]
        if any(free) or before[0] != before[1]:
            self.cp.add(self._end(first) <= self._begin(second))

    def _resources_suffice(self) -> None:
        """Cores, channels and links carry no more than they can."""
        window, draft = self._window, self._window.draft
        begin, items = draft.demands
        held: dict[int, list[tuple[int, int]]] = {}
        for activity in window.near:
            for entry in range(int(begin[activity]), int(begin[activity + 1])):
                held.setdefault(int(items[entry]), []).append((activity, int(draft.amounts[entry])))
        for resource, users in sorted(held.items()):
            capacity = int(draft.capacity[resource])
            is_needed = any(window.is_free(activity) for activity, _ in users)
            if not is_needed or sum(amount for _, amount in users) <= capacity:
                continue
            intervals = [self._interval(activity) for activity, _ in users]
            if all(2 * amount > capacity for _, amount in users):
                self.cp.add_no_overlap(intervals)
            else:
                self.cp.add_cumulative(intervals, [amount for _, amount in users], capacity)

    def _interval(self, activity: int) -> cp_model.IntervalVar:
        if activity not in self._intervals:
            cycles = self._window.cycles[activity]
            self._intervals[activity] = self.cp.new_fixed_size_interval_var(
                self._begin(activity), cycles, f"run {activity}"
            )
        return self._intervals[activity]

    def _memories_suffice(self) -> None:
        """The bytes in use fit, wherever they lie."""
        window, draft = self._window, self._window.draft
        touched = {
            int(draft.memory[held])
            for activity in window.free
            for rows in (draft.reads, draft.fills)
            for held in window.row(rows, activity)
        }
        for memory in sorted(touched):
            capacity = int(window.ground.usable[memory])
            if capacity == NEVER:
                continue
            lives, sizes = [], []
            for held in window.residencies(memory):
                life = self._life(held)
                if life is not None:
                    lives.append(life)
                    sizes.append(int(draft.bytes[held]))
            if sum(sizes) > capacity:
                self.cp.add_cumulative(lives, sizes, capacity)

    def _life(self, held: int) -> cp_model.IntervalVar | None:
        """Return when a residency is there; what takes over bytes, from the end of its writer."""
        window = self._window
        filler = window.filler[held]
        begin: Time = window.start
        if filler >= 0:
            begin = self._end(filler) if window.parent[held] >= 0 else self._begin(filler)
        if isinstance(begin, int):
            begin = max(begin, window.start)
        until = self._until(held)
        if isinstance(begin, int) and isinstance(until, int):
            if until <= begin:
                return None
            return self.cp.new_fixed_size_interval_var(begin, until - begin, f"life {held}")
        # An end that is held back by the end of the window may lie before the start.
        length = self.cp.new_int_var(0, window.end - window.start, f"length {held}")
        return self.cp.new_interval_var(begin, length, until, f"life {held}")

    def _until(self, held: int) -> Time:
        """Return the end of a residency, or of the window if that comes first."""
        window = self._window
        touching = window.touching(held)
        behind = [o for o in touching if not window.is_free(o) and not window.is_before[o]]
        free = [one for one in touching if window.is_free(one)]
        before = max((window.early_end(o) for o in touching if window.is_before[o]), default=0)
        latest = max(map(window.late_end, behind), default=0)
        if window.draft.lasting[held] or latest >= window.end:
            return window.end - self.saved
        if not free:
            return latest - self.saved if behind else min(before, window.end)
        until = self.cp.new_int_var(window.start, window.end, f"until {held}")
        self.cp.add_hint(until, max([before, latest, *map(window.late_end, free)]))
        for activity in free:
            self.cp.add(until >= self._end(activity))
        if behind:
            self.cp.add(until >= latest - self.saved)
        if before > window.start:
            self.cp.add(until >= before)
        return until
