"""The candidate residencies of a model, with everything that can fill and use each of them.

Number 0 of a slice in a memory is there at cycle 0, or a task writes it. The others are filled by
transfers, and numbered by the cycle from which they are valid.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.places import SliceInMemory
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.solvers.milp.tables import MilpTables
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx

Sources: TypeAlias = list[CandidateResidency]


class Origin(Enum):
    """How a candidate comes about."""

    INITIAL = auto()
    WRITTEN = auto()
    TRANSFERRED = auto()


class FillOption(NamedTuple):
    """A transfer that may fill a candidate, and its source."""

    source: CandidateResidency
    option: TransferOption


class MulticastOption(NamedTuple):
    """A multicast that may fill a candidate together with another one, the root.

    Parameters
    ----------
    option
        The root's transfer.
    own
        A transfer to this candidate alone, by the same engine.
    sources
        The candidates out of which the engine can copy to both.
    """

    root: CandidateResidency
    option: TransferOption
    own: TransferOption
    sources: tuple[CandidateResidency, ...]


class Server(NamedTuple):
    """A candidate that may serve a read by a task that runs in ``local``."""

    source: CandidateResidency
    local: MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The properties of a candidate.

    Parameters
    ----------
    writer
        The task that writes it, if one does.
    lasting
        It is kept from its filling to the end, for nothing is gained by giving it up.
    open
        It stands for itself and for all later residencies of its slice in its memory. Whatever
        uses one of those uses this one *late*: it has to be valid, but need not be there any
        more. Every plan, however often it transfers a slice, has a counterpart in a model with
        open candidates, with the same or smaller quantities: everything in it happens in the plan
        too. The optimum of such a model is a lower bound, and without late uses it is a plan.
    """

    key: CandidateResidency
    origin: Origin
    writer: TaskIdx | None
    fills: tuple[FillOption, ...]
    multicasts: tuple[MulticastOption, ...] = ()
    lasting: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """All candidates, and the servers of each read.

    Parameters
    ----------
    unconstrained
        Memories that hold everything at once: nothing there needs an address in the model.
    restricted
        Whether some plan has no counterpart here even with open candidates: then no bound follows.
    """

    shapes: Mapping[CandidateResidency, Shape]
    servers: Mapping[tuple[TaskIdx, int], tuple[Server, ...]]
    unconstrained: frozenset[MemoryIdx]
    restricted: bool

    def of(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[CandidateResidency, ...]:
        """Return the candidates of a slice in a memory."""
        return tuple(key for key in self.shapes if key[:2] == (slice_, memory))


def structure_of(
    tables: MilpTables,
    counts: Mapping[SliceInMemory, int],
    *,
    relaxed: bool,
    addressed: bool,
) -> Structure:
    """Return the structure of a problem.

    Parameters
    ----------
    counts
        How many transfers may bring a slice into a memory; 1 where nothing is said.
    relaxed
        Whether the last candidates are open.
    addressed
        Whether every address in a scratchpad counts, as for the peak.
    """
    unconstrained = tables.unconstrained_memories(addressed)
    return _Builder(tables, counts, relaxed, unconstrained).structure()


class _Builder:
    def __init__(
        self,
        tables: MilpTables,
        counts: Mapping[SliceInMemory, int],
        relaxed: bool,
        unconstrained: frozenset[MemoryIdx],
    ) -> None:
        self._tables = tables
        self._counts = counts
        self._relaxed = relaxed
        self._unconstrained = unconstrained
        self._lasting = tables.lasting_pairs(unconstrained)
        self._restricted = False
        self._of: dict[SliceIdx, list[CandidateResidency]] = defaultdict(list)
        for pair in tables.pairs:
            self._of[pair[0]] += self._numbered(pair)

    def structure(self) -> Structure:
        shapes = {key: self._shape(key) for some in self._of.values() for key in some}
        if any(engine.multicast for engine in self._tables.machine.engines):
            shapes = {key: self._with_multicasts(shape, shapes) for key, shape in shapes.items()}
        shapes = {
            key: shape
            for key, shape in shapes.items()
            if shape.origin is not Origin.TRANSFERRED or shape.fills or shape.multicasts
        }
        return Structure(
            shapes=shapes,
            servers={
                (task.index, position): tuple(self._servers(task.index, read, shapes))
                for task in self._tables.problem.tasks
                for position, read in enumerate(task.reads)
            },
            unconstrained=self._unconstrained,
            restricted=self._restricted,
        )

    def _numbered(self, pair: SliceInMemory) -> Iterator[CandidateResidency]:
        first = self._origin(CandidateResidency(*pair, 0))
        if first is not Origin.TRANSFERRED:
            yield CandidateResidency(*pair, 0)
        count = self._counts.get(pair, 1)
        if pair in self._lasting or self._tables.is_resident(*pair):
            count = 0 if first is Origin.INITIAL else 1
        yield from (CandidateResidency(*pair, 1 + number) for number in range(count))

    def _origin(self, key: CandidateResidency) -> Origin:
        buffers = self._tables.problem.buffers
        if key.number == 0 and key.slice < len(buffers):
            if buffers[key.slice].starts_in == key.memory:
                return Origin.INITIAL
            writer = self._tables.writers[key.slice]
            if writer is not None and key.memory in self._tables.memories_of(writer):
                return Origin.WRITTEN
        return Origin.TRANSFERRED

    def _shape(self, key: CandidateResidency) -> Shape:
        origin = self._origin(key)
        lasting = key[:2] in self._lasting
        last = max(other.number for other in self._of[key.slice] if other[1] == key.memory)
        is_open = self._relaxed and not lasting and key.number == last
        is_open = is_open and not self._tables.is_resident(key.slice, key.memory)
        return Shape(
            key=key,
            origin=origin,
            writer=self._tables.writers[key.slice] if origin is Origin.WRITTEN else None,
            fills=tuple(self._fills(key)) if origin is Origin.TRANSFERRED else (),
            lasting=lasting,
            open=is_open and origin is Origin.TRANSFERRED,
        )

    def _fills(self, key: CandidateResidency) -> Iterator[FillOption]:
        for holder in self._tables.holders(key.slice):
            for source in self._of.get(holder, ()):
                follows = source.number >= key.number or key[:2] in self._lasting
                if source[:2] != key[:2] or not follows:
                    for option in self._options(source, key):
                        yield FillOption(source, option)

    def _options(
        self, source: CandidateResidency, target: CandidateResidency
    ) -> tuple[TransferOption, ...]:
        """Return the transfers out of one candidate into another."""
        return self._tables.transfers.out_of(
            source.slice, target.slice, source.memory, target.memory
        )

    def _with_multicasts(self, shape: Shape, shapes: Mapping[CandidateResidency, Shape]) -> Shape:
        """Add the multicasts whose root is a candidate in a lower memory."""
        if shape.origin is not Origin.TRANSFERRED:
            return shape
        found: dict[tuple[CandidateResidency, TransferOption, TransferOption], Sources] = {}
        for root in self._of[shape.key.slice]:
            if root.memory >= shape.key.memory:
                continue
            for fill in shapes[root].fills:
                own = self._joined(fill, shape.key)
                if own is not None and own.rate != fill.option.rate:
                    self._restricted = True
                elif own is not None:
                    found.setdefault((root, fill.option, own), []).append(fill.source)
        multicasts = (MulticastOption(*key, tuple(some)) for key, some in found.items())
        return replace(shape, multicasts=tuple(multicasts))

    def _joined(self, fill: FillOption, key: CandidateResidency) -> TransferOption | None:
        """Return a transfer to a candidate by the engine and out of the source of a fill."""
        if not self._tables.machine.engines[fill.option.engine].multicast:
            return None
        if fill.source[:2] == key[:2] and fill.source.number >= key.number:
            return None
        options = self._options(fill.source, key)
        return next((option for option in options if option.engine == fill.option.engine), None)

    def _servers(
        self, task: TaskIdx, read: SliceIdx, shapes: Mapping[CandidateResidency, Shape]
    ) -> Iterator[Server]:
        for holder in self._tables.holders(read):
            for key in self._of.get(holder, ()):
                for local in self._tables.memories_of(task):
                    extra = self._tables.remote_cycles(read, key.memory, local)
                    if key in shapes and extra is not None:
                        yield Server(key, local)
