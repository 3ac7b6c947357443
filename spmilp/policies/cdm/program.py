"""The placement as a 0/1 program, written in PuLP and solved by HiGHS.

A variable for each part. Each buffer has one home at most; those who read it in a scratchpad get it
from one place in one way, unless it has its home there; what is taken fits each scratchpad at each
event. A wave lasts as long as its busiest core: its tasks, and the transfers that it waits for;
and, with contention, as its busiest link. The sum over all waves is made small.
"""

from collections import defaultdict

from spmilp.policies.cdm.data import Accesses
from spmilp.policies.cdm.iterative import Freedom
from spmilp.policies.cdm.parts import Event, Placement, Variable
from spmilp.solvers.milp.process import backend_name, run
from spmilp.solvers.milp.program import Limits, Linear, Program, total


class PlacementProgram:
    """The program of a problem's variables.

    Parameters
    ----------
    apart
        Parts that no placement may have.
    """

    def __init__(
        self, accesses: Accesses, freedom: Freedom, apart: Placement = frozenset()
    ) -> None:
        self._accesses = accesses
        self.program = Program()
        zero = Linear()
        self._chosen = [
            self.program.binary(part.role)
            if freedom.allows(accesses, part.index) and part.index not in apart
            else zero
            for part in accesses.parts
        ]
        for one in accesses.variables.values():
            self._every_reader_is_served_once(one)
        self._memories_suffice()
        self._waves_last_as_long_as_what_is_busiest(contention=freedom.contention)

    def solve(self, limits: Limits) -> Placement | None:
        """Return the best placement that was found within the limits; ``None`` without any."""
        outcome = run(self.program, backend_name("highs"), limits)
        if outcome.interrupted and outcome.values is None:
            raise KeyboardInterrupt
        if outcome.values is None:
            return None
        values = outcome.values
        return frozenset(
            part
            for part, chosen in enumerate(self._chosen)
            if any(values[index] > 0.5 for index in chosen.terms)
        )

    def _every_reader_is_served_once(self, one: Variable) -> None:
        program, chosen, parts = self.program, self._chosen, self._accesses.parts
        program.at_most(total(chosen[home] for home in one.homes.values()), 1)
        for memory, able in one.readers.items():
            local = [one.homes[memory]] if memory in one.homes else []
            program.equal(total(chosen[part] for part in (*able, *local)), 1)
            for needed in {parts[part].needs for part in able} - {None}:
                some = [chosen[part] for part in able if parts[part].needs == needed]
                program.at_most(total(some), chosen[needed] if needed is not None else 1)

    def _memories_suffice(self) -> None:
        taken: dict[Event, list[Linear]] = defaultdict(list)
        for part, chosen in zip(self._accesses.parts, self._chosen, strict=True):
            for event, blocks in part.blocks.items():
                taken[event].append(blocks * chosen)
        for event, some in sorted(taken.items()):
            capacity = self._accesses.tables.capacity[event[0]]
            if capacity is not None:
                fixed = self._accesses.fixed.get(event, 0)
                self.program.at_most(total((fixed, *some)), capacity)

    def _waves_last_as_long_as_what_is_busiest(self, *, contention: bool) -> None:
        accesses = self._accesses
        waves, resources = accesses.base.shape
        count = resources if contention else accesses.cores
        busy: dict[tuple[int, int], list[Linear]] = defaultdict(list)
        for part, chosen in zip(accesses.parts, self._chosen, strict=True):
            for wave, resource, cycles in part.charges:
                if resource < count:
                    busy[wave, resource].append(cycles * chosen)
        lasts = []
        for wave in range(waves):
            base = accesses.base[wave, :count]
            sums = [total((int(base[r]), *busy.get((wave, r), ()))) for r in range(count)]
            longest = max(self.program.high(one) for one in sums)
            last = self.program.number(f"wave_{wave}", int(base.max()), longest)
            for one in sums:
                self.program.at_least(last, one)
            lasts.append(last)
        self.program.objective = total(lasts)
