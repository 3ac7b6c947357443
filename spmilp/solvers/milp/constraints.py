"""What a plan is, bytes and shared hardware aside: the list in ``add_all`` is the contents."""

from collections import defaultdict

from spmilp.solvers.milp.linear import Linear
from spmilp.solvers.milp.program import Program, total
from spmilp.solvers.milp.stays import Origin, Stay
from spmilp.solvers.milp.variables import StayVars, Variables


class Constraints:
    """Adds the families of rows that concern tasks, stays and transfers one by one."""

    def __init__(self, variables: Variables) -> None:
        self._vars = variables
        self._lookup = variables.lookup
        self._program: Program = variables.program

    def add_all(self) -> None:
        """Add all families; pairs in place must be known before."""
        self._every_task_runs_once()
        self._tasks_follow_their_predecessors()
        self._stays_are_filled_once()
        self._stays_end_after_they_begin()
        self._transfers_read_what_is_there()
        self._transfers_take_their_cycles()
        self._reads_are_served_once()
        self._reads_find_what_is_there()
        self._stays_are_numbered_in_time()
        self._outputs_are_there_at_the_end()
        self._the_makespan_is_the_last_end()

    def _every_task_runs_once(self) -> None:
        for task in self._vars.tasks:
            self._program.equal(total(task.pools.values()), 1)

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self._vars.tasks, self._lookup.tables.predecessors, strict=True):
            for earlier in before:
                self._program.at_least(task.start, self._vars.tasks[earlier].end)

    def _stays_are_filled_once(self) -> None:
        for stay in self._vars.stays.values():
            if stay.shape.origin is Origin.MOVED:
                found = [found for _, found in stay.transfers()]
                self._program.equal(total([*found, *stay.rides.values()]), stay.present)

    def _stays_end_after_they_begin(self) -> None:
        """What does not exist takes no time: it ends when it begins."""
        program = self._program
        for stay in self._vars.stays.values():
            missing = 1 - stay.present
            if stay.shape.origin is Origin.MOVED:
                program.at_least(stay.valid, stay.start)
                program.at_most(stay.valid, stay.start, stay.present)
            if stay.end is not None:
                program.at_least(stay.end, stay.start)
                program.at_least(stay.end, stay.valid, missing)
                program.at_most(stay.end, stay.start, stay.present)

    def _transfers_read_what_is_there(self) -> None:
        for stay in self._vars.stays.values():
            sources = dict.fromkeys(fill.source for fill in stay.fills)
            for source in sources:
                on, late = stay.fills_from(source), stay.late_fills_from(source)
                self._needs(source, on, late, stay.start)
                self._lasts(source, on, stay.valid)

    def _needs(self, key: Stay, on: Linear, late: Linear, start: Linear) -> None:
        """A use, late or not, finds the stay, and finds it valid."""
        used = self._vars.stays[key]
        either = on + late
        self._program.at_most(either, used.present)
        self._program.at_least(start, used.valid, 1 - either)

    def _lasts(self, key: Stay, on: Linear, end: Linear) -> None:
        """A use that is not late finds the stay until its end."""
        used = self._vars.stays[key]
        if used.end is not None:
            self._program.at_least(used.end, end, 1 - on)

    def _transfers_take_their_cycles(self) -> None:
        for stay in self._vars.stays.values():
            self._program.at_least(stay.valid, stay.start + own_cycles(stay))

    def _reads_are_served_once(self) -> None:
        """By a stay that the core of the task can read from where it is."""
        for (task, _), read in self._vars.reads.items():
            serving = [*read.on.items(), *read.late.items()]
            for memory, here in self._vars.tasks[task].memories.items():
                local = [found for server, found in serving if server.local == memory]
                self._program.equal(total(local), here)

    def _reads_find_what_is_there(self) -> None:
        """The operand of a pair in place is there, but its bytes are the result's by then."""
        pairs: dict[tuple[int, Stay], list[Linear]] = defaultdict(list)
        for (task, old, _), found in self._vars.in_place.items():
            pairs[task, old].append(found)
        for (task, position), read in self._vars.reads.items():
            times = self._vars.tasks[task]
            slice_ = self._lookup.problem.tasks[task].reads[position]
            for stay in dict.fromkeys(server.stay for server in read.on):
                on, late = read.by(stay), read.late_by(stay)
                self._needs(stay, on, late, times.start)
                given = pairs.get((task, stay), []) if stay.slice == slice_ else []
                self._lasts(stay, total([on, *(-one for one in given)]), times.end)
                if given:
                    self._lasts(stay, on, times.start)

    def _stays_are_numbered_in_time(self) -> None:
        for key, stay in self._vars.stays.items():
            following = self._vars.stays.get(key._replace(number=key.number + 1))
            if following is not None and stay.shape.origin is Origin.MOVED:
                self._program.at_most(following.present, stay.present)
                self._program.at_least(following.valid, stay.valid, 1 - following.present)

    def _outputs_are_there_at_the_end(self) -> None:
        for buffer in self._lookup.problem.buffers:
            if buffer.ends_in is None:
                continue
            kept: list[Linear] = []
            for key in self._vars.structure.of(buffer.index, buffer.ends_in):
                kept += self._kept(key, self._vars.stays[key])
            self._program.at_least(total(kept), 1)

    def _kept(self, key: Stay, stay: StayVars) -> list[Linear]:
        """Return variables that say that a stay lasts until the makespan."""
        self._vars.kept[key] = stay.present
        if stay.end is None:
            return [stay.present]
        kept = self._vars.kept[key] = self._program.binary(f"slice{key.slice}_kept{key.number}")
        self._program.at_most(kept, stay.present)
        self._program.at_least(stay.end, self._vars.makespan, 1 - kept)
        if not stay.shape.open:
            return [kept]
        late = self._program.binary(f"slice{key.slice}_late_kept{key.number}")
        self._program.at_most(late, stay.present)
        self._vars.late_outputs.append((key, late))
        return [kept, late]

    def _the_makespan_is_the_last_end(self) -> None:
        for task in self._vars.tasks:
            self._program.at_least(self._vars.makespan, task.end)
        for stay in self._vars.stays.values():
            if stay.shape.origin is Origin.MOVED:
                self._program.at_least(self._vars.makespan, stay.valid)


def own_cycles(stay: StayVars) -> Linear:
    """Return the cycles of the transfer that fills a stay, those for other stays left aside."""
    return total(fill.way.cycles * found for fill, found in stay.transfers())
