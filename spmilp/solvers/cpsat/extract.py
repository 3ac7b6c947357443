"""From the solver's values to decisions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from spmilp.solvers.cpsat.variables import Literal, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Decisions, Fill, TaskRun

T = TypeVar("T")


def read_decisions(variables: Variables, value: Callable[[Any], int]) -> Decisions:
    """Read a solution; ``value`` gives the value of an expression."""
    return _Reader(variables, value).decisions()


class _Reader:
    def __init__(self, variables: Variables, value: Callable[[Any], int]) -> None:
        self._vars = variables
        self._problem = variables.tables.problem
        self._value = value
        self._existing = {
            key: residency
            for key, residency in variables.residencies.items()
            if value(residency.present)
        }

    def decisions(self) -> Decisions:
        served, late = {}, set(self._late_sources())
        for position, read in self._vars.reads.items():
            for key in self._chosen(read.on):
                served[position] = key
            for key in self._chosen(read.late):
                served[position] = key
                late.add(key)
        return Decisions(
            runs=tuple(self._runs()),
            fills={key: self._fill(key) for key in self._existing},
            served=served,
            outputs=tuple(self._outputs()),
            lasting=frozenset(key for key in self._existing if self._is_fixed(key)),
            in_place=tuple(self._chosen(self._vars.in_place)),
            late=frozenset(late),
        )

    def _chosen(self, literals: Mapping[T, Literal]) -> Iterator[T]:
        return (one for one, literal in literals.items() if self._value(literal))

    def _runs(self) -> Iterator[TaskRun]:
        for task in self._vars.tasks:
            pool = next(self._chosen(task.pools))
            yield TaskRun(pool=pool, start=self._value(task.start), end=self._value(task.end))

    def _late_sources(self) -> Iterator[CandidateResidency]:
        for residency in self._existing.values():
            yield from self._chosen(residency.late_sources)

    def _fill(self, key: CandidateResidency) -> Fill:
        residency = self._existing[key]
        start = self._value(residency.start)
        root = key if self._value(residency.moved) else next(self._chosen(residency.roots), None)
        if root is None:
            return Fill(start=start)
        belongs_to = self._vars.residencies[root]
        sources = (belongs_to.sources, belongs_to.late_sources)
        source = next((key for some in sources for key in self._chosen(some)), None)
        option = next(self._chosen(belongs_to.options), None)
        engine = None if option is None else option.engine
        return Fill(start=start, source=source, engine=engine, root=root)

    def _outputs(self) -> Iterator[CandidateResidency]:
        """Yield, for each buffer with an end, the residency that is kept longest there."""
        for buffer in self._problem.buffers:
            pair = buffer.index, buffer.ends_in
            there = {key: one for key, one in self._existing.items() if key[:2] == pair}
            lasting = [key for key, one in there.items() if one.end is None]
            if lasting:
                yield lasting[0]
            elif there:
                yield max(there, key=lambda key: (self._value(there[key].end), key))

    def _is_fixed(self, key: CandidateResidency) -> bool:
        """Say whether a residency is a part of a DRAM tensor for all of the plan."""
        residency = self._existing[key]
        at_place = self._vars.tables.at_place(key.slice, key.memory)
        return residency.end is None and residency.lifecycle.initial and at_place
