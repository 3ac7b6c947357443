"""Addresses for a plan whose times are known: each memory is one problem of :mod:`spmilp.packing`.

Where an engine wants the addresses of both ends of a transfer to be congruent, what it moves is
aligned to its modulus, with as many bytes before it as that takes.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import lcm
from types import MappingProxyType
from typing import TypeAlias

from spmilp.bounds.best import Bound
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.packing import Item as PackingItem
from spmilp.packing import PackingOptions, PackingProblem, minimise, pack
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.memory import home_of
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.common.clock import Clock, Step
from spmilp.solvers.exact.formulation.extraction import Item, TimedPlan
from spmilp.solvers.exact.formulation.tables import WITHOUT_LIMIT, ProblemTables
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx

LIMITS = PackingOptions(node_limit=2_000_000)
"""A few seconds; a limit on nodes gives the same answer everywhere."""

Placeable: TypeAlias = tuple[str, int]
"""What has an address of its own: ``("residency", index)`` or ``("tensor", index)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The residencies with their offsets, and the address of each tensor."""

    residencies: tuple[Residency, ...]
    tensors: tuple[Bytes, ...]

    def plan(self, tables: ProblemTables, timed: TimedPlan, bound: Bound, solver: str) -> Plan:
        """Return the plan that has these times and addresses."""
        placements, transfers = timed.placements, timed.transfers
        measures = measure(tables.problem, placements, self.residencies, transfers)
        return Plan(
            placements=placements,
            residencies=self.residencies,
            transfers=transfers,
            tensors=self.tensors,
            claim=claim_of(measures, bound.value, bound.name),
            solver=solver,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSet:
    """Items of a memory for which no addresses were found at their times.

    Few of them where that is proven, all where a limit came first.
    """

    memory: MemoryIdx
    items: frozenset[Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What has an address of its own in a memory, and the problem of packing it."""

    things: tuple[Placeable, ...]
    problem: PackingProblem


def contents_of(
    tables: ProblemTables,
    timed: TimedPlan,
    memory: Memory,
    residues: Mapping[Placeable, Bytes] = MappingProxyType({}),
) -> Contents:
    """Return what is to be packed into a memory; what lies at its place in a tensor is left out.

    A residency and the one that takes its bytes over have one offset and share bytes for as long as
    both live, which is what the packing calls *together*. ``residues`` are the bytes left free
    before each thing whose address has to be congruent.
    """
    last = max((one.end for one in timed.residencies), default=0) + 1
    modulus = _modulus(tables)

    def item(
        thing: Placeable, size: Bytes, life: tuple[Cycles, Cycles], address: Bytes | None = None
    ) -> PackingItem:
        free = residues.get(thing, 0) if address is None else 0
        strict = modulus if address is None and thing in residues else 1
        return PackingItem(
            size=free + size,
            lifetimes=(life,),
            alignment=lcm(memory.alignment, strict),
            offset=address,
        )

    items = {
        thing: item(thing, tensor.bytes, (0, last))
        for tensor in tables.problem.tensors
        for thing in (("tensor", tensor.index),)
        if tensor.memory == memory.index
    }
    for one in timed.residencies:
        if one.memory == memory.index and home_of(tables.problem, one) is None:
            thing, life = ("residency", one.index), (one.start, max(one.end, one.start + 1))
            address = tables.address(one.slice, memory.index)
            items[thing] = item(thing, one.bytes, life, address)
    position = {thing: number for number, thing in enumerate(items)}
    pairs = ((("residency", old), ("residency", new)) for _, old, new in timed.pairs)
    return Contents(
        things=tuple(items),
        problem=PackingProblem(
            items=tuple(items.values()),
            capacity=WITHOUT_LIMIT if memory.size is None else memory.size,
            reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
            together=tuple((position[a], position[b]) for a, b in pairs if a in position),
        ),
    )


def _modulus(tables: ProblemTables) -> Bytes:
    return lcm(*(engine.congruence for engine in tables.machine.engines))


def _residues(tables: ProblemTables, timed: TimedPlan) -> dict[Placeable, Bytes]:
    """Return the addresses, modulo the engines' congruences, of what these engines move.

    Of what transfers and pairs in place tie together one is chosen: that of what is pinned to an
    address, or 0 in a scratchpad. The others follow.
    """
    modulus, problem = _modulus(tables), tables.problem
    ahead: dict[Placeable, list[tuple[Placeable, Bytes]]] = defaultdict(list)

    def end(slice_: SliceIdx, index: ResidencyIdx) -> tuple[Placeable, Bytes]:
        one = timed.residencies[index]
        home = home_of(tables.problem, one)
        if home is not None:
            return ("tensor", home), layout_at_place(problem, slice_).offset
        holder = slice_ if one.slice is None else one.slice
        return ("residency", index), layout_in_slice(problem, slice_, holder).offset

    def tie(one: tuple[Placeable, Bytes], other: tuple[Placeable, Bytes]) -> None:
        ahead[one[0]].append((other[0], one[1] - other[1]))
        ahead[other[0]].append((one[0], other[1] - one[1]))

    for move in timed.transfers:
        if tables.machine.engines[move.engine].congruence > 1:
            for target in move.destinations:
                tie(end(move.slice, move.source), end(move.slice, target))
    for _, old, new in timed.pairs if ahead else ():
        tie((("residency", old), 0), (("residency", new), 0))

    def first(thing: Placeable) -> tuple[bool, bool, Placeable, Bytes]:
        kind, index = thing
        one = timed.residencies[index] if kind == "residency" else None
        address = None if one is None else tables.address(one.slice, one.memory)
        is_low = one is not None and not tables.is_dram(one.memory)
        return address is None, not is_low, thing, address or 0

    found: dict[Placeable, Bytes] = {}
    for _, _, root, address in sorted(map(first, ahead)):
        waiting = [(root, address)]
        while waiting:
            thing, residue = waiting.pop()
            if thing not in found:
                found[thing] = residue % modulus
                waiting += [(other, residue + more) for other, more in ahead[thing]]
    return found


def find_addresses(
    tables: ProblemTables, timed: TimedPlan, *, low: bool, clock: Clock | None = None
) -> Addresses | ConflictSet:
    """Return addresses, or items of one memory for which none were found.

    ``low``: scratchpads are packed as low as can be shown within the time of one packing. When the
    ``clock`` is over, no more addresses are looked for.
    """
    found: dict[Placeable, Bytes] = {}
    residues = _residues(tables, timed)
    for memory in tables.machine.memories:
        contents = contents_of(tables, timed, memory, residues)
        if not contents.things:
            continue
        options = replace(LIMITS, time_limit=None if clock is None else clock.engine_seconds())
        solve = minimise if low and memory.kind is MemoryKind.SPM else pack
        packing = solve(contents.problem, options)
        if clock is not None:
            clock.pace.count(Step.ADDRESS, len(contents.things) + packing.nodes)
        if packing.offsets is None:
            return _conflict(timed, memory, contents, packing.conflict)
        for thing, offset, item in zip(
            contents.things, packing.offsets, contents.problem.items, strict=True
        ):
            found[thing] = offset + (residues.get(thing, 0) if item.offset is None else 0)
    return with_offsets(tables, timed.residencies, found)


def _conflict(
    timed: TimedPlan, memory: Memory, contents: Contents, stuck: tuple[int, ...] | None
) -> ConflictSet:
    """Return the items behind a packing that was not found, with those whose bytes they share."""
    members = range(len(contents.things)) if stuck is None else stuck
    found = {index for kind, index in map(contents.things.__getitem__, members) if kind != "tensor"}
    for _, old, new in timed.pairs:
        if found & {old, new}:
            found |= {old, new}
    items = frozenset(timed.items[index] for index in found)
    return ConflictSet(memory=memory.index, items=items)


def with_offsets(
    tables: ProblemTables, residencies: tuple[Residency, ...], found: Mapping[Placeable, Bytes]
) -> Addresses:
    """Return residencies at the offsets found, those at their places where their tensors lie."""
    problem = tables.problem
    tensors = tuple(found.get(("tensor", one.index), 0) for one in problem.tensors)

    def offset(one: Residency) -> Bytes:
        home = home_of(tables.problem, one)
        if home is None or one.slice is None:
            return found["residency", one.index]
        return tensors[home] + layout_at_place(problem, one.slice).offset

    return Addresses(
        residencies=tuple(replace(one, offset=offset(one)) for one in residencies), tensors=tensors
    )
