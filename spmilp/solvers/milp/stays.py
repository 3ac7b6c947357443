"""Which residencies a model may have: stays, what can fill them, and what can use them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.solvers.milp.lookup import Lookup
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Stay(NamedTuple):
    """A possible residency.

    Number 0 is there at cycle 0 or is born: a task writes it. The others are brought by transfers,
    and numbered by the cycle from which they are valid.
    """

    slice: SliceIdx
    memory: MemoryIdx
    number: int


class Origin(Enum):
    """How a stay comes about."""

    INITIAL = auto()
    BORN = auto()
    MOVED = auto()


class Fill(NamedTuple):
    """A transfer that may fill a stay: out of which stay, and by which way."""

    source: Stay
    way: TransferOption


class Ride(NamedTuple):
    """A multicast that may fill a stay besides another one, the leader.

    Parameters
    ----------
    way
        The leader's.
    own
        The way of a transfer to this stay alone, by the same engine.
    sources
        The stays out of which the engine can copy to both.
    """

    leader: Stay
    way: TransferOption
    own: TransferOption
    sources: tuple[Stay, ...]


class Server(NamedTuple):
    """A stay that may serve a read by a task that runs in ``local``."""

    stay: Stay
    local: MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a stay can be.

    Parameters
    ----------
    writer
        The task that writes it, if it is born.
    lasting
        It is kept from its filling to the end, for nothing is gained by giving it up.
    open
        It stands for itself and for all later residencies of its slice in its memory. Whatever
        uses one of those uses this one *late*: it has to be valid, but need not be there any
        more. Every plan, however often it moves a slice, so has a counterpart in a model with open
        stays, with the same or smaller quantities, in which nothing happens that did not happen in
        the plan. The optimum of such a model is a lower bound, and where it has no late use, a
        plan.
    """

    stay: Stay
    origin: Origin
    writer: TaskIdx | None
    fills: tuple[Fill, ...]
    rides: tuple[Ride, ...]
    lasting: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """All stays, and what may serve each read.

    Parameters
    ----------
    roomy
        Memories with room for everything at once: nothing there needs an address in the model.
    restricted
        Whether some plan has no counterpart here, open stays left aside: then no bound follows.
    """

    shapes: Mapping[Stay, Shape]
    servers: Mapping[tuple[TaskIdx, int], tuple[Server, ...]]
    roomy: frozenset[MemoryIdx]
    restricted: bool

    def of(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[Stay, ...]:
        """Return the stays of a slice in a memory."""
        return tuple(stay for stay in self.shapes if stay[:2] == (slice_, memory))


def structure_of(
    lookup: Lookup,
    counts: Mapping[tuple[SliceIdx, MemoryIdx], int],
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
        Whether the last stays are open.
    addressed
        Whether every address in a scratchpad counts, as for the peak.
    """
    return _Builder(lookup, counts, relaxed, addressed).structure()


class _Builder:
    def __init__(
        self,
        lookup: Lookup,
        counts: Mapping[tuple[SliceIdx, MemoryIdx], int],
        relaxed: bool,
        addressed: bool,
    ) -> None:
        self._lookup = lookup
        self._counts = counts
        self._relaxed = relaxed
        self._roomy = lookup.roomy_memories(addressed)
        self._lasting = lookup.lasting_pairs(self._roomy)
        self._restricted = False
        self._stays: dict[SliceIdx, list[Stay]] = {}
        for slice_, memory in lookup.pairs:
            self._stays.setdefault(slice_, []).extend(self._numbered(slice_, memory))

    def structure(self) -> Structure:
        shapes = {stay: self._shape(stay) for some in self._stays.values() for stay in some}
        if any(engine.multicast for engine in self._lookup.machine.engines):
            shapes = {stay: self._with_rides(shape, shapes) for stay, shape in shapes.items()}
        shapes = {
            stay: shape
            for stay, shape in shapes.items()
            if shape.origin is not Origin.MOVED or shape.fills or shape.rides
        }
        return Structure(
            shapes=shapes,
            servers=dict(self._servers(shapes)),
            roomy=self._roomy,
            restricted=self._restricted,
        )

    def _numbered(self, slice_: SliceIdx, memory: MemoryIdx) -> Iterator[Stay]:
        first = self._origin(Stay(slice_, memory, 0))
        if first is not Origin.MOVED:
            yield Stay(slice_, memory, 0)
        pair = slice_, memory
        if pair in self._lasting:
            count = 0 if first is Origin.INITIAL else 1
        else:
            count = self._counts.get(pair, 1)
        yield from (Stay(slice_, memory, 1 + number) for number in range(count))

    def _origin(self, stay: Stay) -> Origin:
        problem = self._lookup.problem
        if stay.number == 0 and stay.slice < len(problem.buffers):
            if problem.buffers[stay.slice].starts_in == stay.memory:
                return Origin.INITIAL
            writer = self._lookup.tables.writers[stay.slice]
            if writer is not None and stay.memory in self._lookup.memories_of(writer):
                return Origin.BORN
        return Origin.MOVED

    def _shape(self, stay: Stay) -> Shape:
        origin = self._origin(stay)
        lasting = stay[:2] in self._lasting
        last = max(other.number for other in self._stays[stay.slice] if other[1] == stay.memory)
        return Shape(
            stay=stay,
            origin=origin,
            writer=self._lookup.tables.writers[stay.slice] if origin is Origin.BORN else None,
            fills=tuple(self._fills(stay)) if origin is Origin.MOVED else (),
            rides=(),
            lasting=lasting,
            open=self._relaxed and not lasting and origin is Origin.MOVED and stay.number == last,
        )

    def _fills(self, stay: Stay) -> Iterator[Fill]:
        ways = self._lookup.tables.transfers
        parent = self._lookup.problem.slices[stay.slice].buffer
        for holder in dict.fromkeys((stay.slice, parent)):
            for source in self._stays.get(holder, ()):
                if source[:2] == stay[:2] and (
                    source.number >= stay.number or stay[:2] in self._lasting
                ):
                    continue
                for way in ways.between(stay.slice, source.memory, stay.memory):
                    if ways.can_copy(way, stay.slice, source.slice):
                        yield Fill(source, way)

    def _with_rides(self, shape: Shape, shapes: Mapping[Stay, Shape]) -> Shape:
        """Add the multicasts to a stay in a lower memory, whose transfer it is."""
        if shape.origin is not Origin.MOVED:
            return shape
        rides: dict[tuple[Stay, TransferOption, TransferOption], list[Stay]] = {}
        for leader in self._stays[shape.stay.slice]:
            if leader.memory >= shape.stay.memory:
                continue
            for fill in shapes[leader].fills:
                own = self._joined(fill, shape.stay)
                if own is not None and own.rate != fill.way.rate:
                    self._restricted = True
                elif own is not None:
                    rides.setdefault((leader, fill.way, own), []).append(fill.source)
        return Shape(
            stay=shape.stay,
            origin=shape.origin,
            writer=None,
            fills=shape.fills,
            rides=tuple(Ride(*key, tuple(some)) for key, some in rides.items()),
            lasting=shape.lasting,
            open=shape.open,
        )

    def _joined(self, fill: Fill, stay: Stay) -> TransferOption | None:
        """Return the way of a copy to a stay by the engine and out of the stay of a fill."""
        if not self._lookup.machine.engines[fill.way.engine].multicast:
            return None
        if fill.source[:2] == stay[:2] and fill.source.number >= stay.number:
            return None
        ways = self._lookup.tables.transfers
        for way in ways.between(stay.slice, fill.source.memory, stay.memory):
            if way.engine == fill.way.engine and ways.can_copy(way, stay.slice, fill.source.slice):
                return way
        return None

    def _servers(
        self, shapes: Mapping[Stay, Shape]
    ) -> Iterator[tuple[tuple[TaskIdx, int], tuple[Server, ...]]]:
        lookup = self._lookup
        for task in lookup.problem.tasks:
            local = lookup.memories_of(task.index)
            for position, read in enumerate(task.reads):
                parent = lookup.problem.slices[read].buffer
                yield (
                    (task.index, position),
                    tuple(
                        Server(stay, here)
                        for holder in dict.fromkeys((read, parent))
                        for stay in self._stays.get(holder, ())
                        if stay in shapes
                        for here in local
                        if lookup.tables.remote_cycles(read, stay.memory, here) is not None
                    ),
                )
