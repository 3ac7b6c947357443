"""From the solver's values to decisions."""

from collections.abc import Callable, Iterator
from typing import Any

from spmilp.solvers.cpsat.variables import Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.decisions import Decisions, Fill, TaskRun


def read_decisions(variables: Variables, value: Callable[[Any], int]) -> Decisions:
    """Read a solution; ``value`` gives the value of an expression."""
    return _Reader(variables, value).decisions()


class _Reader:
    def __init__(self, variables: Variables, value: Callable[[Any], int]) -> None:
        self._vars = variables
        self._problem = variables.tables.problem
        self._value = value
        self._existing = {key: stay for key, stay in variables.stays.items() if value(stay.present)}

    def decisions(self) -> Decisions:
        value, late = self._value, set(self._late_sources())
        served = {}
        for read_key, read in self._vars.reads.items():
            for key, literal in read.on.items():
                if value(literal):
                    served[read_key] = key
            for key, literal in read.late.items():
                if value(literal):
                    served[read_key] = key
                    late.add(key)
        pairs = self._vars.in_place.items()
        return Decisions(
            runs=tuple(self._runs()),
            fills={key: self._fill(key) for key in self._existing},
            served=served,
            outputs=tuple(self._outputs()),
            lasting=frozenset(key for key in self._existing if self._stays_at_its_place(key)),
            in_place=tuple(pair for pair, literal in pairs if value(literal)),
            late=frozenset(late),
        )

    def _runs(self) -> Iterator[TaskRun]:
        for task in self._vars.tasks:
            pool = next(pool for pool, literal in task.pools.items() if self._value(literal))
            yield TaskRun(pool=pool, start=self._value(task.start), end=self._value(task.end))

    def _late_sources(self) -> Iterator[CandidateResidency]:
        for stay in self._existing.values():
            yield from (key for key, literal in stay.late_arcs.items() if self._value(literal))

    def _fill(self, key: CandidateResidency) -> Fill:
        start, root = self._value(self._existing[key].start), self._root(key)
        if root is None:
            return Fill(start=start)
        leader = self._vars.stays[root]
        arcs = (*leader.arcs.items(), *leader.late_arcs.items())
        return Fill(
            start=start,
            source=next((source for source, literal in arcs if self._value(literal)), None),
            engine=next(
                (w.engine for w, literal in leader.moves.items() if self._value(literal)), None
            ),
            root=root,
        )

    def _root(self, key: CandidateResidency) -> CandidateResidency | None:
        stay = self._existing[key]
        if self._value(stay.moved):
            return key
        return next((root for root, literal in stay.rides.items() if self._value(literal)), None)

    def _outputs(self) -> Iterator[CandidateResidency]:
        """Yield, for each buffer with an end, the residency that is kept longest there."""
        for buffer in self._problem.buffers:
            pair = buffer.index, buffer.ends_in
            there = {key: stay for key, stay in self._existing.items() if key[:2] == pair}
            lasting = [key for key, stay in there.items() if stay.end is None]
            if lasting:
                yield lasting[0]
            elif there:
                yield max(there, key=lambda key: (self._value(there[key].end), key))

    def _stays_at_its_place(self, key: CandidateResidency) -> bool:
        """Say whether a residency is a part of a DRAM tensor for all of the plan."""
        stay = self._existing[key]
        at_place = self._vars.tables.at_place(key.slice, key.memory)
        return stay.end is None and stay.shape.initial and at_place
