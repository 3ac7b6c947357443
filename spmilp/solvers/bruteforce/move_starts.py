"""The ways to start a transfer now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from spmilp.solvers.bruteforce.contents import Contents, combined
from spmilp.solvers.bruteforce.demand import Demand
from spmilp.solvers.bruteforce.given import Given
from spmilp.solvers.bruteforce.passages import FAR, Passage, Passages
from spmilp.solvers.bruteforce.room import Item, Room
from spmilp.solvers.bruteforce.state import Move, Node, State, Stay
from spmilp.units import MemoryIdx, SliceIdx


@dataclass(frozen=True, slots=True)
class MoveStart:
    """A transfer starts: from a named stay to new ones."""

    slice: SliceIdx
    source: int
    passage: Passage
    destinations: tuple[int, ...]


class MoveStarts:
    """Every transfer that could start and be of use.

    A transfer brings a slice that is still wanted. Into a spacious memory (see :mod:`.room`) it
    brings nothing that is there already or comes sooner, as a slice of its own or, unless engines
    mind how their source lies, inside its parent.
    """

    def __init__(
        self, given: Given, rooms: Sequence[Room], passages: Passages, demand: Demand
    ) -> None:
        self._given = given
        self._rooms = rooms
        self._passages = passages
        self._demand = demand

    def after(self, node: Node) -> Iterator[tuple[Node, MoveStart]]:
        """Yield what follows when one transfer starts."""
        state = node.state
        for part in self._given.problem.slices:
            targets = self._demand.targets(state, part.index)
            if not targets:
                continue
            for memory, position in self._sources(state, part.index):
                held = state.shelves[memory].stays[position].slice
                for passage in self._passages.of(part.index, memory, held):
                    if self._is_free(state, passage) and self._is_useful(
                        state, part.index, passage, targets
                    ):
                        yield from self._started(node, part.index, memory, position, passage)

    def _sources(self, state: State, slice_: SliceIdx) -> Iterator[tuple[MemoryIdx, int]]:
        """Yield the stays to copy a slice from; of those in a spacious memory one will do."""
        whole = self._given.whole[slice_]
        for memory, shelf in enumerate(state.shelves):
            for position, stay in enumerate(shelf.stays):
                if stay.slice in (slice_, whole) and stay.valid_in == 0 and not stay.leaving:
                    yield memory, position
                    if self._rooms[memory].is_spacious and not self._passages.are_particular:
                        break

    def _is_free(self, state: State, passage: Passage) -> bool:
        """Say whether a channel of the engine and the rate on every link are free."""
        channels = self._given.machine.engines[passage.engine].channels
        if sum(move.engine == passage.engine for move in state.moves) >= channels:
            return False
        return all(
            passage.rate + sum(move.rate for move in state.moves if link in move.links)
            <= self._given.link_rates[link]
            for link in passage.links
        )

    def _is_useful(
        self, state: State, slice_: SliceIdx, passage: Passage, targets: set[MemoryIdx]
    ) -> bool:
        onward = self._passages.fastest[slice_]
        return all(
            any(onward[memory][target] < FAR for target in targets)
            and not (
                self._rooms[memory].is_spacious and self._is_there(state, slice_, memory, passage)
            )
            for memory in passage.destinations
        )

    def _is_there(
        self, state: State, slice_: SliceIdx, memory: MemoryIdx, passage: Passage
    ) -> bool:
        whole = self._given.whole[slice_]
        for stay in state.shelves[memory].stays:
            if stay.slice == slice_:
                return True
            if stay.slice == whole and not self._passages.are_particular:
                return stay.valid_in <= passage.cycles
        return False

    def _started(
        self, node: Node, slice_: SliceIdx, memory: MemoryIdx, position: int, passage: Passage
    ) -> Iterator[tuple[Node, MoveStart]]:
        ends = passage.destinations
        source = node.state.shelves[memory].stays[position]
        choices = [self._residues(node.state, slice_, memory, source, passage, m) for m in ends]
        names = range(node.made, node.made + len(ends))
        move = MoveStart(slice_, node.names[memory][position], passage, tuple(names))
        running = Move(passage.engine, passage.rate, passage.links, passage.cycles)
        moves = tuple(sorted((*node.state.moves, running)))
        for residues in product(*choices):
            left_behind = Contents.of(node, memory)
            left_behind.use(position, passage.cycles)
            changed = {memory: [left_behind]}
            for end, residue, name in zip(ends, residues, names, strict=True):
                before = left_behind if end == memory else Contents.of(node, end)
                item = self._item(slice_, end, residue, passage)
                changed[end] = list(before.with_items(self._rooms[end], [item], [name]))
            for shelves, all_names in combined(node, changed, self._rooms):
                state = node.state._replace(moves=moves, shelves=shelves)
                yield Node(state, all_names, node.made + len(ends)), move

    def _item(self, slice_: SliceIdx, memory: MemoryIdx, residue: int, passage: Passage) -> Item:
        return Item(
            stay=Stay(slice_, residue, passage.cycles, passage.cycles, False, False),
            bytes=self._given.problem.slices[slice_].bytes,
            is_placed=self._given.home(slice_, memory) is not None,
        )

    def _residues(
        self,
        state: State,
        slice_: SliceIdx,
        memory: MemoryIdx,
        source: Stay,
        passage: Passage,
        end: MemoryIdx,
    ) -> list[int]:
        """Return the residues that the engine's congruence leaves to the new stay.

        One at its place has that of its tensor, written 0; there is none if that breaks the rule.
        """
        congruence = self._given.machine.engines[passage.engine].congruence
        inside = self._passages.offset_in_source(slice_, memory, source.slice).offset
        home = self._given.home(slice_, memory)
        first = inside + (source.residue if home is None else state.anchors[home])
        at = self._given.home(slice_, end)
        if at is not None:
            to = self._passages.offset_in_source(slice_, end, slice_).offset + state.anchors[at]
            return [0] if (first - to) % congruence == 0 else []
        return [r for r in self._given.residues[end] if (first - r) % congruence == 0]
