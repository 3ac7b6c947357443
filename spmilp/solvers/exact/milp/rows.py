"""A constraint program as rows of a mixed-integer program, and a solution of it back again.

The model is that of :mod:`spmilp.solvers.exact.formulation`: literals become 0/1 variables; times
and offsets become continuous ones; a row that literals enforce is released by a big-M, the least
number for its own expressions. What remains is that intervals must not overlap, on cores, channels,
links and bytes. A 0/1 variable says of the end of one interval and the start of another that the
one comes no later; all constraints share it. It is 0 where no solution allows it, and 1 where all
do.

What is held of a resource is added up whenever an interval begins: by itself, and by all that have
begun no later and not ended. The sum rises only when an interval begins, so that is enough. Of two
that begin at the same cycle the one with the lower index counts as the earlier one, so that the
last of them counts all. Of two that exceed the capacity by themselves, one has ended before the
other begins; where that is so of each two, nothing is added up.

**Back again.** A solver's values are whole up to a tolerance, and a big-M times that tolerance may
be a cycle. So only the 0/1 variables are taken from it, rounded. With them fixed the constraint
program has nothing left but least times and offsets along chains, which CP-SAT computes exactly.
"""

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.exact.milp.program import Linear, Number, Program, total

NONE, ONE = Linear(), Linear(constant=1)

Key: TypeAlias = tuple[tuple[tuple[int, int], ...], int]
"""The terms and the constant of an expression."""

FARTHEST = 2**61
"""Bounds of a domain beyond this are none."""

SECONDS = 5.0
"""Deterministic time for the times and offsets of a solution."""

KINDS = (
    *("linear", "bool_or", "bool_and", "at_most_one", "exactly_one"),
    *("interval", "no_overlap", "no_overlap_2d", "cumulative"),
)
"""The constraints that a model may have."""


class Span(NamedTuple):
    """An interval: when it begins and ends if it is there."""

    name: str
    start: Linear
    end: Linear
    size: Linear
    present: Linear


class User(NamedTuple):
    """An interval that holds an amount of a resource while it lasts."""

    span: Span
    amount: int


class Rows:
    """The rows of a constraint program.

    The last task and transfer end in the variable ``makespan``. Solutions are looked for whose
    objective lies between ``low`` and ``high``; ``None`` for no limit. At most ``most_whole``
    variables may have to be integers. ``go_on`` is called now and then; what it raises ends the
    writing of rows.
    """

    def __init__(
        self,
        cp: cp_model.CpModel,
        makespan: cp_model.IntVar,
        low: int,
        high: int | None,
        most_whole: int | None = None,
        go_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._cp = cp
        self._go_on = go_on
        self._proto = proto = cp.proto
        self._makespan = makespan.index
        self.program = Program(most_whole)
        objective = proto.objective
        self._linear = [(one, one.linear) for one in proto.constraints if kind_of(one) == "linear"]
        self._bounds = self._propagated(low, high)
        self._numbers = [
            self.program.number(
                re.sub(r"\W+", "_", one.name) or f"number{index}",
                *self._bounds[index],
                whole=list(one.domain) == [0, 1],
            )
            for index, one in enumerate(proto.variables)
        ]
        self._orders: dict[tuple[Key, Key], Linear] = {}
        self._starts: dict[tuple[Key, Key], Linear] = {}
        self._apart: set[tuple[int, int]] = set()
        self._spans: dict[int, Span] = {}
        self.program.objective = self._sum(objective.vars, objective.coeffs) + int(objective.offset)
        self.program.at_least(self.program.objective, low)
        if high is not None:
            self.program.at_most(self.program.objective, high)
        self._add_holes()
        for index, one in enumerate(proto.constraints):
            go_on()
            getattr(self, f"_add_{kind_of(one)}")(index, one)

    def decided(self, values: Sequence[float]) -> cp_model.CpSolver | None:
        """Return whole values with the decisions of a solution; ``None`` if it is none."""
        fixed = self._cp.clone()
        whole = {one.index: round(values[one.index]) for one in self.program.variables if one.whole}
        for index, number in enumerate(self._numbers):
            if set(number.terms) & whole.keys():
                (chosen,) = number.terms
                domain = fixed.proto.variables[index].domain
                domain.clear()
                domain.extend([whole[chosen]] * 2)
        back = {next(iter(n.terms)): i for i, n in enumerate(self._numbers) if n.terms}

        def expression(key: Key) -> Any:
            terms, constant = key
            parts = [(fixed.get_int_var_from_proto_index(back[i]), c) for i, c in terms]
            return sum((c * variable for variable, c in parts), constant)

        for (end, start), order in self._orders.items():
            if order.terms and whole[next(iter(order.terms))]:
                fixed.add(expression(end) <= expression(start))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = SECONDS
        solver.parameters.catch_sigint_signal = False
        found = solver.solve(fixed) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return solver if found else None

    def _literal(self, reference: int) -> Linear:
        return self._numbers[reference] if reference >= 0 else 1 - self._numbers[-reference - 1]

    def _sum(self, variables: Sequence[int], factors: Sequence[int]) -> Linear:
        return total(self._numbers[v] * f for v, f in zip(variables, factors, strict=True))

    def _expression(self, one: Any) -> Linear:
        return self._sum(one.vars, one.coeffs) + int(one.offset)

    def _released(self, one: Any) -> list[Linear]:
        """Return what releases a constraint: that one of its enforcing literals is false."""
        return [1 - self._literal(reference) for reference in one.enforcement_literal]

    def _propagated(self, low: int, high: int | None) -> list[tuple[int, int]]:
        """Return the bounds of all variables that follow from rows that nothing releases."""
        objective = self._proto.objective
        goal = list(zip(objective.vars, objective.coeffs, strict=True))
        below = FARTHEST if high is None else high
        bounds = [[min(one.domain), max(one.domain)] for one in self._proto.variables]
        rows = [
            (list(zip(row.vars, row.coeffs, strict=True)), list(row.domain))
            for one, row in self._linear
            if not one.enforcement_literal
        ]
        offset = int(objective.offset)
        rows.append((goal, [low - offset, below - offset]))
        for _ in range(len(bounds)):
            changed = False
            for terms, (first, last) in rows:
                for sign, least in ((1, first), (-1, -last)):
                    if least > -FARTHEST:
                        changed |= _tighten(bounds, [(v, sign * c) for v, c in terms], least)
            if not changed:
                break
        return [(first, last) for first, last in bounds]

    def _distance(self, one: Linear, other: Linear) -> int:
        """Return by how much one expression is above another one at the least."""
        return self.program.low(other - one)

    def _before(self, one: Span, other: Span) -> Linear:
        """Return a variable that implies that one interval has ended when the other begins."""
        key = _key(one.end), _key(other.start)
        if key not in self._orders:
            if self._distance(one.end, other.start) >= 0:
                self._orders[key] = ONE
            elif self._distance(other.start, one.end) > 0:
                self._orders[key] = NONE
            else:
                found = self._orders[key] = self.program.binary(f"{one.name}_before_{other.name}")
                self.program.at_least(other.start, one.end, 1 - found)
        return self._orders[key]

    def _keep_apart(self, *pairs: tuple[Span, Span], wanted: Number) -> None:
        """Have one interval of a pair end before the other begins, so many times as is wanted."""
        apart = [self._before(a, b) for one in pairs for a, b in (one, one[::-1])]
        if ONE not in apart:
            self.program.at_least(total(apart), wanted)

    def _add_holes(self) -> None:
        """Where a domain has holes, one of its ranges is chosen."""
        for number, one in zip(self._numbers, self._proto.variables, strict=True):
            ends = list(one.domain)
            ranges = list(zip(ends[::2], ends[1::2], strict=True))
            if len(ranges) > 1:
                name = re.sub(r"\W+", "_", one.name)
                chosen = [self.program.binary(f"{name}_in{n}") for n in range(len(ranges))]
                self.program.equal(total(chosen), 1)
                for choice, (low, high) in zip(chosen, ranges, strict=True):
                    self.program.at_least(number, low, 1 - choice)
                    self.program.at_most(number, high, 1 - choice)

    def _add_linear(self, index: int, one: Any) -> None:
        row, released = one.linear, self._released(one)
        left, (low, high) = self._sum(row.vars, row.coeffs), row.domain
        if low == high and not released:
            self.program.equal(left, low)
            return
        if low > -FARTHEST:
            self.program.at_least(left, low, *released)
        if high < FARTHEST:
            self.program.at_most(left, high, *released)

    def _add_bool_or(self, index: int, one: Any) -> None:
        some = [self._literal(reference) for reference in one.bool_or.literals]
        self.program.at_least(total([*some, *self._released(one)]), 1)

    def _add_bool_and(self, index: int, one: Any) -> None:
        for reference in one.bool_and.literals:
            self.program.at_least(total([self._literal(reference), *self._released(one)]), 1)

    def _add_at_most_one(self, index: int, one: Any) -> None:
        self.program.at_most(total(map(self._literal, one.at_most_one.literals)), 1)

    def _add_exactly_one(self, index: int, one: Any) -> None:
        self.program.equal(total(map(self._literal, one.exactly_one.literals)), 1)

    def _add_interval(self, index: int, one: Any) -> None:
        """It lasts from its start to its end; the number of its constraint is its own."""
        released, interval = self._released(one), one.interval
        start, end, size = map(self._expression, (interval.start, interval.end, interval.size))
        self._spans[index] = Span(
            name=re.sub(r"\W+", "_", one.name) or f"interval{index}",
            start=start,
            end=end,
            size=size,
            present=1 - released[0] if released else ONE,
        )
        self.program.at_least(start + size, end, *released)
        self.program.at_most(start + size, end, *released)

    def _add_no_overlap(self, index: int, one: Any) -> None:
        for a, b in combinations(sorted(one.no_overlap.intervals), 2):
            if (a, b) not in self._apart:
                self._apart.add((a, b))
                pair = self._spans[a], self._spans[b]
                self._keep_apart(pair, wanted=pair[0].present + pair[1].present - 1)

    def _add_no_overlap_2d(self, index: int, one: Any) -> None:
        both = one.no_overlap_2d
        boxes = [
            (self._spans[x], self._spans[y])
            for x, y in zip(both.x_intervals, both.y_intervals, strict=True)
        ]
        for (time, extent), (other, below) in combinations(boxes, 2):
            there = [time.present, other.present, extent.present, below.present]
            self._keep_apart((time, other), (extent, below), wanted=total(there) - 3)

    def _add_cumulative(self, index: int, one: Any) -> None:
        capacity = self.program.high(self._expression(one.cumulative.capacity))
        users = [
            User(self._spans[span], self.program.low(self._expression(amount)))
            for span, amount in zip(one.cumulative.intervals, one.cumulative.demands, strict=True)
        ]
        users.sort(key=lambda user: (-user.amount, user.span.name))
        self._have_time(users, capacity)
        pairs = [*combinations(users, 2)]
        too_many = [(a, b) for a, b in pairs if a.amount + b.amount > capacity]
        for a, b in too_many:
            self._keep_apart((a.span, b.span), wanted=a.span.present + b.span.present - 1)
        if len(too_many) < len(pairs):
            self._count_at_every_start(users, capacity)

    def _have_time(self, users: Sequence[User], capacity: int) -> None:
        """Amounts times cycles fit into the capacity until the last of them has ended.

        Nothing has a reason to last longer than the makespan.
        """
        held = []
        for span, amount in users:
            size: Linear = span.size
            if not size.terms:
                size = span.present * size.constant
            elif span.present is not ONE:
                size = self.program.number(f"{span.name}_held", 0, max(0, self.program.high(size)))
                self.program.at_least(size, span.size, 1 - span.present)
            held.append(amount * size)
        self.program.at_most(total(held), capacity * self._numbers[self._makespan])

    def _count_at_every_start(self, users: Sequence[User], capacity: int) -> None:
        program = self.program
        for place, (span, amount) in enumerate(users):
            self._go_on()
            held = [amount * span.present]
            for other, (rival, taken) in enumerate(users):
                if other == place:
                    continue
                ended = self._before(rival, span)
                begun = self._starts_first(users, other, place)
                if ended is ONE or not (begun.terms or begun.constant):
                    continue
                runs = program.binary(f"{rival.name}_runs_at_{span.name}")
                program.at_least(runs, total((rival.present, begun, ended * -1, -1)))
                held.append(taken * runs)
            program.at_most(total(held), capacity, 1 - span.present)

    def _starts_first(self, users: Sequence[User], one: int, other: int) -> Linear:
        """Return whether one begins before another, or with it if it has the lower place."""
        if one > other:
            return 1 - self._starts_first(users, other, one)
        first, second = users[one].span, users[other].span
        if self._distance(first.start, second.start) >= 0:
            return ONE
        if self._distance(second.start, first.start) > 0:
            return NONE
        key = _key(first.start), _key(second.start)
        if key not in self._starts:
            found = self.program.binary(f"{first.name}_starts_before_{second.name}")
            self.program.at_least(second.start, first.start, 1 - found)
            self.program.at_least(first.start, second.start + 1, found)
            self._starts[key] = found
        return self._starts[key]


def kind_of(constraint: Any) -> str:
    """Return which constraint of CP-SAT's it is."""
    found = [kind for kind in KINDS if getattr(constraint, f"has_{kind}")()]
    if not found:
        raise TypeError(f"no rows are known for the constraint {constraint}")
    return found[0]


def _key(one: Linear) -> Key:
    return tuple(sorted(one.terms.items())), one.constant


def _tighten(bounds: list[list[int]], terms: list[tuple[int, int]], least: int) -> bool:
    """Tighten the bounds of the variables of a sum that has a least value; say whether it did."""
    most = sum(c * bounds[v][1 if c > 0 else 0] for v, c in terms)
    changed = False
    for v, c in terms:
        low, high = bounds[v]
        rest = least - (most - c * (high if c > 0 else low))
        limit = -(-rest // c) if c > 0 else rest // c
        # Where nothing is left between the bounds, the row itself says that there is no solution.
        if c > 0 and low < limit <= high:
            bounds[v][0], changed = limit, True
        elif c < 0 and low <= limit < high:
            bounds[v][1], changed = limit, True
    return changed
