"""Precedence variables: one for each ordered pair of activities, shared by all constraints."""

from typing import NamedTuple

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.program import Linear
from spmilp.solvers.milp.variables import NONE, ONE, Variables
from spmilp.units import TaskIdx


class Span(NamedTuple):
    """The time of an activity or a residency.

    Parameters
    ----------
    name
        Unique.
    owner
        The task with which it begins, if it begins with one.
    after
        Tasks that have always ended when it begins.
    """

    name: str
    start: Linear
    end: Linear
    owner: TaskIdx | None
    after: frozenset[TaskIdx]


class Orders:
    """Makes variables that say that one span has ended when another one begins.

    The variable is 0 where no plan allows it, and 1 where it holds in every plan:

    - a span that begins with a task does not end before the spans that are over by then;
    - the run of a task ends before every span that comes after this task.
    """

    def __init__(self, variables: Variables) -> None:
        self._vars = variables
        self._found: dict[tuple[str, str], Linear] = {}

    def task(self, task: TaskIdx) -> Span:
        """Return the run of a task."""
        times = self._vars.tasks[task]
        before = self._vars.tables.ancestors[task]
        return Span(f"task{task}", times.start, times.end, task, before)

    def transfer(self, key: CandidateResidency) -> Span:
        """Return the transfer that fills a candidate."""
        candidate = self._vars.candidates[key]
        name = f"transfer{key.slice}_{key.memory}_{key.number}"
        return Span(name, candidate.start, candidate.valid, None, self.after_writer(key))

    def after_writer(self, key: CandidateResidency) -> frozenset[TaskIdx]:
        """Return the tasks that have ended when a transfer of a slice begins."""
        writer = self._vars.tables.writers[self._vars.tables.problem.slices[key.slice].buffer]
        if writer is None:
            return frozenset()
        return self._vars.tables.ancestors[writer] | {writer}

    def before(self, one: Span, other: Span) -> Linear:
        """Return a variable that implies that one span has ended when the other begins."""
        key = one.name, other.name
        if key not in self._found:
            self._found[key] = self._new(one, other)
        return self._found[key]

    def apart(self, one: Span, other: Span) -> list[Linear]:
        """Return variables of which one implies that the spans do not overlap."""
        return [self.before(one, other), self.before(other, one)]

    def _new(self, one: Span, other: Span) -> Linear:
        program = self._vars.program
        if program.low(one.end) > program.high(other.start):
            return NONE
        if other.owner is not None and (other.owner in one.after or other.owner == one.owner):
            return NONE
        if one.name == f"task{one.owner}" and one.owner in other.after:
            return ONE
        found = program.binary(f"{one.name}_before_{other.name}")
        program.at_least(other.start, one.end, 1 - found)
        return found
