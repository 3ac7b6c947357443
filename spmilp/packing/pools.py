"""Buffers and several pools: the problem, the answer, and what live bytes say where none exists."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from unicodedata import category

from spmilp import quantities
from spmilp.packing.items import LARGEST, Item, PackingProblem, busiest
from spmilp.packing.result import PackingStatus
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One of several memories.

    Parameters
    ----------
    name
        Without control characters, ``|``, ``=`` and ``,``.
    capacity, alignment
        Bytes, and of how many of them each offset in it is a multiple.
    cost
        Of each byte of each buffer that lies in it, in any unit: cycles, energy. Whole, 0 or more.
    reserved
        Half-open byte ranges that no buffer may touch.

    Raises a ``ValueError`` if a name or a number is not of this kind.
    """

    name: str
    capacity: Bytes
    alignment: Bytes = 1
    cost: int = 0
    reserved: tuple[tuple[Bytes, Bytes], ...] = ()

    def __post_init__(self) -> None:
        if not self.name.strip() or any(c in "|=," or category(c) == "Cc" for c in self.name):
            raise ValueError(
                f"pool {self.name!r}: expected a name without control characters, |, = and comma"
            )
        for what, least in (("capacity", 1), ("alignment", 1), ("cost", 0)):
            number = getattr(self, what)
            if not least <= number < LARGEST:
                limits = f"expected {least} to {LARGEST - 1}"
                raise ValueError(f"pool {self.name}: {what} is {number}, {limits}")
        PackingProblem(items=(), capacity=self.capacity, reserved=self.reserved)  # checks ranges

    @property
    def room(self) -> Bytes:
        """Bytes that are not reserved."""
        return self.capacity - taken_by(self.reserved, self.capacity)


def taken_by(ranges: Iterable[tuple[Bytes, Bytes]], capacity: Bytes) -> Bytes:
    """Return how many of the bytes below a capacity lie in one of some ranges."""
    taken = top = 0
    for start, end in sorted(ranges):
        start, end = max(start, top), min(end, capacity)
        taken += max(0, end - start)
        top = max(top, end)
    return taken


def pool_of(text: str) -> Pool:
    """Read ``NAME=BYTES``, with ``,cost=N``, ``,align=BYTES`` and ``,reserve=FROM-TO`` behind it.

    Raises a ``ValueError`` that says what is wrong.
    """
    first, *others = text.split(",")
    name, is_there, capacity = first.partition("=")
    if not is_there:
        raise ValueError(f"{text!r} is no pool; write NAME=BYTES, as in sram=256K")
    alignment, cost, reserved = 1, 0, []
    for other in others:
        key, _, value = (part.strip() for part in other.partition("="))
        if key == "cost" and value.isascii() and value.isdecimal() and len(value) < 20:
            cost = int(value)
        elif key == "align":
            alignment = quantities.byte_count(value)
        elif key == "reserve":
            reserved.append(quantities.byte_range(value))
        else:
            known = "cost=N (a whole number), align=BYTES and reserve=FROM-TO"
            raise ValueError(f"{other!r}: behind the capacity there may be {known}")
    return Pool(
        name=name.strip(),
        capacity=quantities.byte_count(capacity),
        alignment=alignment,
        cost=cost,
        reserved=tuple(reserved),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """An item with a name, and where it may lie.

    Parameters
    ----------
    name
        For messages.
    item
        Size, lifetimes, alignment and offset, which is the one in whatever pool it lies in.
    pools
        Names of the pools that it may lie in; none for any.
    at_end
        Whether it lies at the end of its pool, as high as the alignment lets it.

    Raises a ``ValueError`` if it lies at the end and at an offset as well.
    """

    name: str
    item: Item
    pools: tuple[str, ...] = ()
    at_end: bool = False

    def __post_init__(self) -> None:
        if self.at_end and self.item.offset is not None:
            given = f"at the end of its pool and at offset {self.item.offset}"
            raise ValueError(f"buffer {self.name}: lies {given}; say one of the two")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolProblem:
    """Buffers and the pools that hold them; both are referred to by position.

    Raises a ``ValueError`` if two pools have one name, a buffer names a pool that is not there, or
    sums of capacities, sizes or costs reach 2^60.
    """

    buffers: tuple[Buffer, ...]
    pools: tuple[Pool, ...]

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"pools {', '.join(names) or 'none'}: expected one, each name once")
        for buffer in self.buffers:
            for name in buffer.pools:
                if name not in names:
                    there = f"there are {', '.join(names)}"
                    raise ValueError(f"buffer {buffer.name}: no pool {name!r}; {there}")
        for pool in self.pools:
            for alignment in {buffer.item.alignment for buffer in self.buffers}:
                if lcm(alignment, pool.alignment) >= LARGEST:
                    both = f"{alignment} B and of {pool.alignment} B"
                    raise ValueError(f"pool {pool.name}: no multiple of {both} is below 2^60")
        costs = max(1, *(pool.cost for pool in self.pools))
        if sum(pool.capacity for pool in self.pools) >= LARGEST:
            raise ValueError("the capacities of the pools add up to 2^60 B or more")
        if costs * sum(buffer.item.size for buffer in self.buffers) >= LARGEST:
            raise ValueError("the sizes, times the cost of the dearest pool, reach 2^60")

    def pools_of(self, buffer: int) -> tuple[int, ...]:
        """Return the pools that may hold a buffer."""
        return tuple(p for p in range(len(self.pools)) if not self.why_not_in(buffer, p))

    def why_not_in(self, buffer: int, pool: int) -> str:
        """Return why a buffer can never lie in a pool, or "" if it may be able to."""
        one, there = self.buffers[buffer], self.pools[pool]
        if one.pools and there.name not in one.pools:
            return f"{there.name} is none of its pools"
        if one.item.size > there.capacity:
            return f"{there.name} has {there.capacity:,} B"
        offset = one.item.offset
        if offset is None:
            return ""
        if offset + one.item.size > there.capacity:
            end = f"from its offset {offset:,} it ends at {offset + one.item.size:,} B"
            return f"{end}, {there.name} at {there.capacity:,} B"
        if offset % there.alignment:
            return (
                f"its offset {offset:,} B is no multiple of {there.alignment:,} B in {there.name}"
            )
        return ""

    def item_in(self, buffer: int, pool: int) -> Item:
        """Return the item that a buffer is in a pool, with the pool's alignment."""
        one, there = self.buffers[buffer], self.pools[pool]
        alignment = lcm(one.item.alignment, there.alignment)
        offset = one.item.offset
        if one.at_end:
            offset = (there.capacity - one.item.size) // alignment * alignment
        return replace(one.item, alignment=alignment, offset=offset)

    def problem_in(self, pool: int, buffers: Sequence[int], capacity: Bytes) -> PackingProblem:
        """Return the packing problem of some buffers in the bytes of a pool below a capacity."""
        items = tuple(self.item_in(buffer, pool) for buffer in buffers)
        return PackingProblem(items=items, capacity=capacity, reserved=self.pools[pool].reserved)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPacking:
    """The answer for several pools.

    Parameters
    ----------
    status
        ``optimal``: no packing costs less, and where heights were minimised, none that costs as
        much has a smaller sum of heights. ``infeasible``: proven, not everything fits.
    places
        The pool and the offset of each buffer; ``None`` when none were found.
    cost, cost_bound
        Sum over buffers of bytes times the cost of their pool, and proven: no packing costs less.
    heights, heights_bound
        Of each pool the highest byte in use plus one, and a proven bound on the sum of them over
        all packings of least cost; ``None`` where heights were not minimised.
    left_out, least_left_out
        Where not everything fits, buffers without which the others do, and the bytes proven to be
        left out at least, whichever they are.
    reasons
        In words, what does not fit and by how many bytes; proven.
    nodes, seconds
        Work of the search in nodes of the packer, and wall seconds.
    """

    problem: PoolProblem
    status: PackingStatus = PackingStatus.UNKNOWN
    places: tuple[tuple[int, Bytes], ...] | None = None
    cost: int | None = None
    cost_bound: int = 0
    heights: tuple[Bytes, ...] | None = None
    heights_bound: Bytes | None = None
    left_out: tuple[int, ...] = ()
    least_left_out: Bytes = 0
    reasons: tuple[str, ...] = ()
    nodes: int = 0
    seconds: float = 0.0

    @property
    def shortage(self) -> tuple[str, ...]:
        """What does not fit, and what has to be left out at least, as lines of a message."""
        last = f"  whatever is left out, it is {self.least_left_out:,} B or more"
        if self.left_out:
            left = [self.problem.buffers[b] for b in self.left_out]
            size = sum(buffer.item.size for buffer in left)
            named = quantities.names([buffer.name for buffer in left])
            last += f"; without {named} ({size:,} B) the others fit"
        return (*(f"  {reason}" for reason in self.reasons), last)

    @property
    def by_name(self) -> Mapping[str, tuple[str, Bytes]]:
        """The name of the pool and the offset of each buffer, by the buffer's name."""
        buffers, pools = self.problem.buffers, self.problem.pools
        return {
            buffer.name: (pools[pool].name, offset)
            for buffer, (pool, offset) in zip(buffers, self.places or (), strict=False)
        }


def shortages(problem: PoolProblem) -> Iterator[str]:
    """Yield what cannot fit, whatever is done: single buffers, and live bytes above all room.

    Buffers that lie on each other are left to the search.
    """
    pools = range(len(problem.pools))
    may = [frozenset(problem.pools_of(b)) for b in range(len(problem.buffers))]
    for b, buffer in enumerate(problem.buffers):
        if not may[b]:
            named = [p for p in pools if problem.pools[p].name in buffer.pools] or pools
            listed = "; ".join(problem.why_not_in(b, p) for p in named)
            size = f"buffer {buffer.name} of {buffer.item.size:,} B"
            yield f"{size} fits no pool that it may lie in: {listed}"
    worst, said = 0, ""
    for some in sorted({*filter(None, may), frozenset(pools)}, key=lambda s: (len(s), sorted(s))):
        able = [one for one, on in zip(problem.buffers, may, strict=True) if on and on <= some]
        start, end, live = busiest(one.item for one in able)
        room = sum(problem.pools[p].room for p in some)
        if live - room > worst:
            worst = live - room
            alive = [one.name for one in able if any(a <= start < z for a, z in one.item.lifetimes)]
            names = quantities.names([problem.pools[p].name for p in sorted(some)])
            said = (
                f"in [{start}, {end}) {quantities.count(len(alive), 'buffer')} "
                f"{quantities.names(alive)} need {live:,} B, and fit only into {names}, with "
                f"{room:,} B: {worst:,} B too many"
            )
    if said:
        yield said
