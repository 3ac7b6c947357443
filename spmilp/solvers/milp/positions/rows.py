"""The rows of the program of an order; ``add_all`` lists them."""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from spmilp.solvers.milp.positions.tables import Way
from spmilp.solvers.milp.positions.variables import NONE, ONE, PositionVariables
from spmilp.solvers.milp.program import Linear, total
from spmilp.units import SliceIdx


class PositionRows:
    """Adds the families of rows."""

    def __init__(self, variables: PositionVariables) -> None:
        self._vars = variables
        self._tables = variables.tables
        self._program = variables.program

    def add_all(self) -> None:
        """Add all families; the order does not matter."""
        self._what_is_inside_has_come()
        self._what_is_overwritten_is_gone()
        self._loads_find_what_was_stored()
        self._copies_find_their_buffer()
        self._stores_find_what_is_inside()
        self._operands_are_inside()
        self._the_rest_finds_its_operands()
        self._results_stay_until_they_are_stored()
        self._everything_has_room()
        self._links_and_channels_suffice()

    def _what_is_inside_has_come(self) -> None:
        for slice_, inside in self._vars.inside.items():
            for j, here in inside.items():
                came = self._vars.comes(slice_, j) + self._vars.appears(slice_, j)
                self._program.at_most(here, inside.get(j - 1, NONE) + came)

    def _what_is_overwritten_is_gone(self) -> None:
        """An operand has one result in its place, and a result lies in place of one operand."""
        pairs = self._vars.in_place
        for k, read in {(k, read) for k, read, _ in pairs}:
            used = total(one for (at, old, _), one in pairs.items() if (at, old) == (k, read))
            self._program.at_most(used, self._vars.is_inside(read, 2 * k))
            if (k, read) in self._vars.beside:
                anew = self._vars.comes(read, 2 * k + 2) + self._vars.beside[k, read]
                self._program.at_most(self._vars.is_inside(read, 2 * k + 2) + used, 1 + anew)
        for k, written in {(k, written) for k, _, written in pairs}:
            used = total(one for (at, _, new), one in pairs.items() if (at, new) == (k, written))
            self._program.at_most(used, 1)

    def _both(self, slice_: SliceIdx) -> tuple[SliceIdx, ...]:
        """Return what holds a slice: itself and its buffer."""
        return self._tables.base.holders(slice_)

    def _loads_find_what_was_stored(self) -> None:
        for slice_, load in self._vars.loads.items():
            if self._tables.is_outside_at_first(self._tables.buffer(slice_)):
                continue
            stores = self._vars.stores
            able = [stores[one] for one in self._both(slice_) if one in stores]
            for at, moves in (*load.flies.items(), *load.ends.items()):
                self._program.at_most(moves, total(store.ended_by(at) for store in able))

    def _copies_find_their_buffer(self) -> None:
        for slice_, copy in self._vars.copies.items():
            buffer = self._tables.buffer(slice_)
            for j, flies in copy.flies.items():
                self._program.at_most(flies, self._vars.is_inside(buffer, j))
            for i, ends in copy.ends.items():
                around = [self._vars.is_inside(buffer, j) for j in (i - 1, i)]
                came = self._vars.appears(buffer, i) + self._vars.comes(buffer, i)
                self._program.at_most(ends, total([*around, came]))

    def _stores_find_what_is_inside(self) -> None:
        for slice_, store in self._vars.stores.items():
            both = self._both(slice_)
            self._program.at_most(total(store.ends.values()), 1)
            for j, flies in store.flies.items():
                sources = [self._vars.is_inside(one, j) for one in both]
                self._program.at_most(flies, total(sources))
            for i, ends in store.ends.items():
                sources = [self._vars.is_inside(one, i - 1) for one in both]
                written = self._vars.appears(self._tables.buffer(slice_), i)
                self._program.at_most(ends, total([*sources, written]))

    def _operands_are_inside(self) -> None:
        """Each read is served by the slice or by its buffer, from the run's start to its end."""
        for k, task in enumerate(self._vars.order):
            for read in self._tables.problem.tasks[task].reads:
                buffer = self._tables.buffer(read)
                own = ONE if read == buffer else self._program.binary(f"reads{k}_{read}")
                for j in (2 * k, 2 * k + 1):
                    self._program.at_least(self._vars.is_inside(read, j), own)
                    self._program.at_least(self._vars.is_inside(buffer, j), 1 - own)

    def _the_rest_finds_its_operands(self) -> None:
        tasks, last = self._tables.problem.tasks, self._vars.last
        for read in sorted({read for task in self._vars.rest for read in tasks[task].reads}):
            buffer = self._tables.buffer(read)
            if self._vars.known_from(buffer) is None:
                continue
            ways = [self._vars.appears(buffer, last)]
            for one in self._both(read):
                ways += [self._vars.is_inside(one, last - 1), self._vars.comes(one, last)]
            self._program.at_least(total(ways), 1)

    def _results_stay_until_they_are_stored(self) -> None:
        for buffer in self._tables.stored:
            first, store = self._vars.known_from(buffer), self._vars.stores.get(buffer)
            if first is None:
                continue
            if store is None:
                self._program.is_impossible = True
                continue
            for j in range(first, self._vars.last):
                here = self._vars.is_inside(buffer, j)
                self._program.at_least(here + store.ended_by(j), 1)
            self._program.at_least(store.ended_by(self._vars.last), 1)

    def _everything_has_room(self) -> None:
        variables, size = self._vars, self._tables.size
        arriving = (*variables.loads.values(), *variables.copies.values())
        for j in range(variables.last):
            k = j // 2
            parts = [size[s] * inside[j] for s, inside in variables.inside.items() if j in inside]
            parts += [size[flow.slice] * flow.flies[j] for flow in arriving if j in flow.flies]
            for (at, read, written), pair in variables.in_place.items():
                if at == k:
                    parts.append(-min(size[read], size[written]) * pair)
            for (at, read), beside in variables.beside.items():
                if (2 * at + 1) == j:
                    parts.append(size[read] * beside)
            own = Linear(constant=self._tables.own_blocks(variables.order[k]))
            self._program.at_most(total([*parts, own]), self._tables.capacity)

    def _links_and_channels_suffice(self) -> None:
        """In each interval for the cycles, and at each instant for what is under way."""
        variables, program = self._vars, self._program
        flows = (variables.loads, variables.copies, variables.stores)
        moves = [flow for some in flows for flow in some.values()]
        later = self._later_stores()
        for shares in self._shares([flow.way for flow in moves] + later):
            scale = lcm(*(share.denominator for share in shares))
            users = [(int(s * scale), f) for s, f in zip(shares, moves, strict=False) if s]
            least = sum(
                int(share * scale) * way.least
                for share, way in zip(shares[len(moves) :], later, strict=True)
            )
            for i, length in enumerate(variables.lengths):
                parts = [share * flow.cycles[i] for share, flow in users if i in flow.cycles]
                taken = total([*parts, least if i == variables.last else 0])
                program.at_most(taken, scale * length)
            for j in range(variables.last):
                under_way = total(s * f.flies[j] for s, f in users if j in f.flies)
                program.at_most(under_way, scale)

    def _later_stores(self) -> list[Way]:
        """Return how all that leaves which tasks without a position write."""
        tables = self._tables
        later = [b for task in self._vars.rest for b in tables.stored_by(task)]
        return [tables.out[b] for b in later if b in tables.out]

    def _shares(self, ways: Sequence[Way]) -> list[tuple[Fraction, ...]]:
        """Return for links and sets of engines what part of each a transfer of each way takes.

        Those of which others take no less are left out.
        """
        machine = self._tables.problem.machine
        rates = [dict(way.rates) for way in ways]
        rows = {
            tuple(some.get(link, Fraction(0)) / machine.links[link].rate for some in rates)
            for link in {link for some in rates for link in some}
        }
        for engines in {way.engines for way in ways}:
            channels = sum(machine.engines[engine].channels for engine in engines)
            rows.add(tuple(Fraction(way.engines <= engines, channels) for way in ways))

        def is_implied(row: tuple[Fraction, ...]) -> bool:
            others = rows - {row}
            return any(all(a <= b for a, b in zip(row, one, strict=True)) for one in others)

        return [row for row in sorted(rows) if not is_implied(row)]
