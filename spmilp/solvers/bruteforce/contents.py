"""The contents of memories while a step changes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from spmilp.solvers.bruteforce.room import Item, Room
from spmilp.solvers.bruteforce.state import Layout, Node, Shelf, Stay, in_order, without
from spmilp.units import Cycles, MemoryIdx


@dataclass(slots=True)
class Contents:
    """One memory: its stays, their names, and the ways in which they can lie."""

    stays: list[Stay]
    names: list[int]
    layouts: frozenset[Layout] | None

    @classmethod
    def of(cls, node: Node, memory: MemoryIdx) -> "Contents":
        """Return a copy of what a memory holds."""
        shelf = node.state.shelves[memory]
        return cls(list(shelf.stays), list(node.names[memory]), shelf.layouts)

    def use(self, position: int, cycles: Cycles, leaving: bool = False) -> None:
        """Let something read a stay for so many cycles; a leaving one serves nothing else."""
        stay = self.stays[position]
        self.stays[position] = stay._replace(
            busy_for=max(stay.busy_for, cycles), used=True, leaving=stay.leaving or leaving
        )

    def with_items(
        self, room: Room, items: Sequence[Item], names: Sequence[int]
    ) -> Iterator["Contents"]:
        """Yield the contents with items added, for each set of stays that can make room."""
        for placing in room.placings(self.stays, self.layouts, items):
            kept = [i for i in range(len(self.stays)) if i not in placing.evicted]
            gone = {room.tensors + i for i in placing.evicted}
            yield Contents(
                [self.stays[i] for i in kept] + [item.stay for item in items],
                [self.names[i] for i in kept] + list(names),
                without(placing.layouts, gone),
            )

    def in_order(self, room: Room) -> tuple[Shelf, tuple[int, ...]]:
        """Return the contents and their names as a state holds them."""
        return in_order(self.stays, self.names, self.layouts, room.tensors)


def combined(
    node: Node, changed: Mapping[MemoryIdx, Sequence[Contents]], rooms: Sequence[Room]
) -> Iterator[tuple[tuple[Shelf, ...], tuple[tuple[int, ...], ...]]]:
    """Yield all shelves and names, for each combination of what changed memories can hold."""
    memories = list(changed)
    ordered = [[each.in_order(rooms[m]) for each in changed[m]] for m in memories]
    for choice in product(*ordered):
        shelves, names = list(node.state.shelves), list(node.names)
        for memory, (shelf, names_here) in zip(memories, choice, strict=True):
            shelves[memory], names[memory] = shelf, names_here
        yield tuple(shelves), tuple(names)
