"""The rules of a plan without bytes and shared hardware; ``add_all`` lists them.

Transfers with several destinations are tied together at the end (``add_multicasts``).
"""

from collections import defaultdict

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.program import Linear, Program, total
from spmilp.solvers.milp.structure import MulticastOption, Origin
from spmilp.solvers.milp.variables import CandidateVars, Variables, name_of


class Constraints:
    """Adds the families of rows that concern tasks, candidates and transfers one by one."""

    def __init__(self, variables: Variables) -> None:
        self._vars = variables
        self._tables = variables.tables
        self._program: Program = variables.program

    def add_all(self) -> None:
        """Add all families; pairs in place must be known before."""
        self._every_task_runs_once()
        self._tasks_follow_their_predecessors()
        self._tasks_end_in_time()
        self._resident_buffers_stay()
        self._candidates_are_filled_once()
        self._candidates_end_after_they_begin()
        self._transfers_find_their_sources()
        self._transfers_take_their_cycles()
        self._reads_are_served_once()
        self._reads_find_their_operands()
        self._candidates_are_numbered_in_time()
        self._outputs_are_there_at_the_end()
        self._the_makespan_is_the_last_end()

    def _every_task_runs_once(self) -> None:
        for task in self._vars.tasks:
            self._program.equal(total(task.pools.values()), 1)

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self._vars.tasks, self._tables.predecessors, strict=True):
            for earlier in before:
                self._program.at_least(task.start, self._vars.tasks[earlier].end)

    def _tasks_end_in_time(self) -> None:
        for task, cycle in self._tables.not_after.items():
            self._program.at_most(self._vars.tasks[task].end, cycle)

    def _resident_buffers_stay(self) -> None:
        """There once, until all that read any of them have ended; the last may overwrite them."""
        for buffer, memory in self._tables.residents():
            keys = self._vars.structure.of(buffer, memory)
            there = [self._vars.candidates[key] for key in keys]
            self._program.equal(total(one.present for one in there), 1)
            for key, one in zip(keys, there, strict=True):
                if one.end is not None:
                    self._lasts_until_all_have_read(key, one.end, 1 - one.present)

    def _lasts_until_all_have_read(
        self, key: CandidateResidency, end: Linear, unless: Linear
    ) -> None:
        for task in self._tables.readers_of_any(key.slice):
            over = total(
                found
                for (taker, old, _), found in self._vars.in_place.items()
                if (taker, old) == (task, key)
            )
            self._program.at_least(end, self._vars.tasks[task].end, over, unless)

    def _candidates_are_filled_once(self) -> None:
        for candidate in self._vars.transferred:
            found = [found for _, found in candidate.fills.all] + [*candidate.multicasts.values()]
            self._program.equal(total(found), candidate.present)

    def _candidates_end_after_they_begin(self) -> None:
        """A candidate that does not exist takes no time: it ends when it begins."""
        program = self._program
        for one in self._vars.candidates.values():
            if one.shape.origin is Origin.TRANSFERRED:
                program.at_least(one.valid, one.start)
                program.at_most(one.valid, one.start, one.present)
            if one.end is not None:
                program.at_least(one.end, one.start)
                program.at_least(one.end, one.valid, 1 - one.present)
                program.at_most(one.end, one.start, one.present)

    def _transfers_find_their_sources(self) -> None:
        for candidate in self._vars.candidates.values():
            for source in candidate.fills.sources:
                self._needs(source, candidate.fills.of(source), candidate.start)
                self._lasts(source, candidate.fills.on_time(source), candidate.valid)

    def _needs(self, key: CandidateResidency, uses: Linear, start: Linear) -> None:
        """A use, late or not, finds the candidate, and finds it valid."""
        used = self._vars.candidates[key]
        self._program.at_most(uses, used.present)
        self._program.at_least(start, used.valid, 1 - uses)

    def _lasts(self, key: CandidateResidency, on: Linear, end: Linear) -> None:
        """A use that is not late finds the candidate until its end."""
        used = self._vars.candidates[key]
        if used.end is not None:
            self._program.at_least(used.end, end, 1 - on)

    def _transfers_take_their_cycles(self) -> None:
        for candidate in self._vars.candidates.values():
            self._program.at_least(candidate.valid, candidate.start + own_cycles(candidate))

    def _reads_are_served_once(self) -> None:
        """A candidate serves each read, in a memory from which the task's core can read."""
        for (task, _), read in self._vars.reads.items():
            for memory, here in self._vars.tasks[task].memories.items():
                local = [found for server, found in read.all if server.local == memory]
                self._program.equal(total(local), here)

    def _reads_find_their_operands(self) -> None:
        """The operand of a pair in place is there until the task starts; then its result is."""
        pairs: dict[tuple[int, CandidateResidency], list[Linear]] = defaultdict(list)
        for (task, old, _), found in self._vars.in_place.items():
            pairs[task, old].append(found)
        for (task, position), read in self._vars.reads.items():
            times = self._vars.tasks[task]
            slice_ = self._tables.problem.tasks[task].reads[position]
            for key in read.sources:
                on = read.on_time(key)
                self._needs(key, read.of(key), times.start)
                replaced = pairs.get((task, key), []) if key.slice == slice_ else []
                self._lasts(key, total([on, *(-one for one in replaced)]), times.end)
                if replaced:
                    self._lasts(key, on, times.start)

    def _candidates_are_numbered_in_time(self) -> None:
        for key, candidate in self._vars.candidates.items():
            following = self._vars.candidates.get(key._replace(number=key.number + 1))
            if following is not None and candidate.shape.origin is Origin.TRANSFERRED:
                self._program.at_most(following.present, candidate.present)
                self._program.at_least(following.valid, candidate.valid, 1 - following.present)

    def _outputs_are_there_at_the_end(self) -> None:
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in is None:
                continue
            kept: list[Linear] = []
            for key in self._vars.structure.of(buffer.index, buffer.ends_in):
                kept += self._kept(key, self._vars.candidates[key])
            self._program.at_least(total(kept), 1)

    def _kept(self, key: CandidateResidency, candidate: CandidateVars) -> list[Linear]:
        """Return variables that say that a candidate, or a later one, lasts to the makespan."""
        self._vars.kept[key] = candidate.present
        if candidate.end is None:
            return [candidate.present]
        kept = self._vars.kept[key] = self._program.binary(f"slice{key.slice}_kept{key.number}")
        self._program.at_most(kept, candidate.present)
        self._program.at_least(candidate.end, self._vars.makespan, 1 - kept)
        if not candidate.shape.open:
            return [kept]
        late = self._program.binary(f"slice{key.slice}_late_kept{key.number}")
        self._program.at_most(late, candidate.present)
        self._vars.late_outputs.append((key, late))
        return [kept, late]

    def _the_makespan_is_the_last_end(self) -> None:
        for task in self._vars.tasks:
            self._program.at_least(self._vars.makespan, task.end)
        for candidate in self._vars.transferred:
            self._program.at_least(self._vars.makespan, candidate.valid)


def own_cycles(candidate: CandidateVars) -> Linear:
    """Return the cycles of the transfer that fills a candidate, without multicast members."""
    return total(fill.option.cycles * found for fill, found in candidate.fills.all)


def add_multicasts(variables: Variables) -> None:
    """Tie members to their roots, in time and on the links.

    A transfer with several destinations belongs to the candidate in the lowest memory among them,
    the *root*; the other destinations are its *members*. It lasts ``set-up + greatest latency +
    cycles of moving``, and holds one channel, and each link of the union of the routes once. Only
    routes of one rate are joined: where an engine has others, the structure is marked as
    restricted.
    """
    together: dict[tuple[CandidateResidency, int], list[Linear]] = defaultdict(list)
    for key, candidate in variables.candidates.items():
        for member, joins in candidate.multicasts.items():
            _tie(variables, candidate, member, joins)
            together[member.root, key.memory].append(joins)
    for some in together.values():
        if len(some) > 1:
            variables.program.at_most(total(some), 1)
    _hold_the_links_of_all_routes(variables)


def _tie(
    variables: Variables, candidate: CandidateVars, member: MulticastOption, joins: Linear
) -> None:
    """A member is there from the start of the transfer, and valid from its end."""
    program, root = variables.program, variables.candidates[member.root]
    program.at_most(joins, total(found for _, found in variables.fills_of_root(member)))
    program.at_most(candidate.start, root.start, 1 - joins)
    program.at_least(candidate.valid, root.valid, 1 - joins)
    longer = max(0, member.own.latency - member.option.latency)
    program.at_least(root.valid, root.start + own_cycles(root) + longer, 1 - joins)


def _hold_the_links_of_all_routes(variables: Variables) -> None:
    for candidate in variables.candidates.values():
        for member, joins in candidate.multicasts.items():
            held = variables.extra_links.setdefault(member.root, {})
            for link in member.own.links:
                if link in member.option.links:
                    continue
                key = link, member.option.rate
                if key not in held:
                    held[key] = variables.program.binary(f"{name_of(member.root)}_also{link}")
                variables.program.at_least(held[key], joins)
