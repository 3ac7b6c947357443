"""Orders of activities, and with them cumulative resources: cores, engines and links.

There is one precedence variable for each ordered pair of activities, shared by all constraints.

A set of intervals overlaps pair by pair only if there is a cycle that all of them contain (Helly's
theorem on a line). So a resource is never overdrawn if and only if no set that exceeds its capacity
overlaps pair by pair; and it is enough to forbid the minimal ones: of each minimal forbidden set,
as far as its members do use the resource, at least one has ended before another one begins
(Igelmund and Radermacher, "Preselective strategies for the optimization of stochastic project
networks", Networks 13, 1983). With one core or channel these sets are the pairs.

Where there are too many such sets, equal cores and channels are told apart instead, so that each
has its own pairs: intervals of which at most ``c`` overlap can be coloured with ``c`` colours. On a
link, the rates are added up whenever a transfer begins: its own, and those of all that have begun
no later and not ended. The sum rises only when a transfer begins, so that is enough. Of two that
begin at the same cycle the one with the lower index counts as the earlier one, so that the last of
them counts all.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import NamedTuple

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.program import Linear, total
from spmilp.solvers.milp.variables import NONE, ONE, Variables
from spmilp.units import EngineIdx, LinkIdx, TaskIdx


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


MOST_SETS = 600
"""Forbidden sets of one resource that are written down."""


class User(NamedTuple):
    """An activity that holds an amount of a resource during a span, if ``uses`` is 1."""

    span: Span
    amount: Fraction
    uses: Linear


def add_resources(variables: Variables, orders: Orders) -> None:
    """Add the rows of all pools of cores, engines and links."""
    _Resources(variables, orders).add_all()


class _Resources:
    def __init__(self, variables: Variables, orders: Orders) -> None:
        self._vars = variables
        self._orders = orders
        self._tables = variables.tables

    def add_all(self) -> None:
        self._cores_run_one_task_at_a_time()
        self._engines_have_so_many_channels()
        self._links_carry_their_rate()

    def _cores_run_one_task_at_a_time(self) -> None:
        for pool in self._tables.pools:
            users = [
                User(self._orders.task(index), Fraction(1), task.pools[pool.index])
                for index, task in enumerate(self._vars.tasks)
                if pool.index in task.pools
            ]
            self._never_overdrawn(users, Fraction(len(pool.cores)))

    def _engines_have_so_many_channels(self) -> None:
        users: dict[EngineIdx, list[User]] = defaultdict(list)
        for key, candidate in self._vars.candidates.items():
            uses: dict[EngineIdx, list[Linear]] = defaultdict(list)
            for fill, found in candidate.fills.all:
                uses[fill.option.engine].append(found)
            for engine, some in uses.items():
                users[engine].append(User(self._orders.transfer(key), Fraction(1), total(some)))
        for engine, some_users in sorted(users.items()):
            known = self._tables.machine.engines[engine]
            self._never_overdrawn(some_users, Fraction(known.channels))

    def _links_carry_their_rate(self) -> None:
        users: dict[LinkIdx, list[User]] = defaultdict(list)
        for key in self._vars.candidates:
            for (link, rate), uses in self._held(key).items():
                users[link].append(User(self._orders.transfer(key), rate, uses))
        for link, some in sorted(users.items()):
            known = self._tables.machine.links[link]
            self._never_overdrawn(some, known.rate)

    def _held(self, key: CandidateResidency) -> dict[tuple[LinkIdx, Fraction], Linear]:
        """Return the variable of each link and rate that the transfer of a candidate may hold."""
        found: dict[tuple[LinkIdx, Fraction], list[Linear]] = defaultdict(list)
        for fill, chosen in self._vars.candidates[key].fills.all:
            for link in fill.option.links:
                found[link, fill.option.rate].append(chosen)
        for (link, rate), extra in self._vars.extra_links.get(key, {}).items():
            found[link, rate].append(extra)
        return {held: total(some) for held, some in found.items()}

    def _never_overdrawn(self, users: Sequence[User], capacity: Fraction) -> None:
        ordered = sorted(users, key=lambda user: (-user.amount, user.span.name))
        sets = _sets_if_few(ordered, capacity)
        if sets is not None:
            for some in sets:
                self._one_comes_first(some)
        elif all(user.amount == 1 for user in ordered):
            self._tell_apart(ordered, int(capacity))
        else:
            self._count_at_every_start(ordered, capacity)

    def _tell_apart(self, users: Sequence[User], count: int) -> None:
        """Give each user one of the equal units; to break symmetry, low numbers first."""
        program = self._vars.program
        chosen: list[list[Linear]] = []
        for position, user in enumerate(users):
            numbers = range(min(count, position + 1))
            some = [program.binary(f"{user.span.name}_on{n}") for n in numbers]
            program.equal(total(some), user.uses)
            chosen.append(some)
        for (one, on), (other, on_other) in combinations(zip(users, chosen, strict=True), 2):
            apart = total(self._orders.apart(one.span, other.span))
            for mine, yours in zip(on, on_other, strict=False):
                program.at_least(apart, mine + yours - 1)

    def _count_at_every_start(self, users: Sequence[User], capacity: Fraction) -> None:
        program = self._vars.program
        unit = lcm(capacity.denominator, *(user.amount.denominator for user in users))
        spans = list(dict.fromkeys(user.span for user in users))
        starts_first = {}
        for one, other in combinations(spans, 2):
            first = program.binary(f"{one.name}_starts_before_{other.name}")
            program.at_least(other.start, one.start, 1 - first)
            program.at_least(one.start, other.start + 1, first)
            starts_first[one, other], starts_first[other, one] = first, 1 - first
        for user in users:
            held = [int(user.amount * unit) * user.uses]
            for rival in users:
                if rival.span == user.span:
                    continue
                runs = program.binary(f"{rival.span.name}_runs_at_{user.span.name}")
                ended = self._orders.before(rival.span, user.span)
                begun = starts_first[rival.span, user.span]
                program.at_least(runs, total((rival.uses, begun, ended * -1, -1)))
                held.append(int(rival.amount * unit) * runs)
            program.at_most(total(held), int(capacity * unit), 1 - user.uses)

    def _one_comes_first(self, users: Sequence[User]) -> None:
        apart = [
            one for a, b in combinations(users, 2) for one in self._orders.apart(a.span, b.span)
        ]
        wanted = total(user.uses for user in users) - (len(users) - 1)
        self._vars.program.at_least(total(apart), wanted)


def _sets_if_few(users: Sequence[User], capacity: Fraction) -> list[list[User]] | None:
    """Return the minimal forbidden sets; ``None`` when they are many and some are no pairs.

    Pairs alone are never too many. The largest users come first and have pairs only, so the first
    sets do not tell whether others follow.
    """
    sets: list[list[User]] = []
    has_others = False
    for some in _minimal_forbidden_sets(users, capacity):
        sets.append(some)
        has_others = has_others or len(some) > 2
        if has_others and len(sets) > MOST_SETS:
            return None
    return sets


def _minimal_forbidden_sets(users: Sequence[User], capacity: Fraction) -> Iterator[list[User]]:
    """Yield the sets that exceed the capacity, but not without their least member.

    ``users`` come in falling order of amounts, so that the least member is the last.
    """

    rest = [sum((u.amount for u in users[index:]), Fraction(0)) for index in range(len(users))]

    def extended(chosen: list[User], held: Fraction, first: int) -> Iterator[list[User]]:
        for index in range(first, len(users)):
            user = users[index]
            if held + rest[index] <= capacity:
                return
            if any(user.span.name == other.span.name for other in chosen):
                continue
            if held + user.amount > capacity:
                yield [*chosen, user]
            else:
                yield from extended([*chosen, user], held + user.amount, index + 1)

    return extended([], Fraction(0), 0)
