"""Changes of a machine that make a problem fit, each tried by solving with it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter

from spmilp import quantities
from spmilp.errors import SpmilpError
from spmilp.explanation.alike import alike_memories, of_all
from spmilp.explanation.cause import Cause, Misfit
from spmilp.explanation.misfit import gaps_of
from spmilp.machine.machine import ByteRange, Core, Link, Machine, Memory, MemoryKind
from spmilp.units import Bytes, Cycles, MemoryIdx, align_up

MOST_DOUBLINGS = 12

FINE = 16
"""A search for bytes ends when what is known not to suffice is so near: a part of what does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change with which a checked plan was found.

    Parameters
    ----------
    change
        What to change, in words.
    makespan
        Of that plan.
    bytes
        How many bytes more (or reserved less), where the change is in bytes.
    least
        Whether it is proven that fewer bytes do not suffice.
    """

    change: str
    makespan: Cycles
    bytes: Bytes | None = None
    least: bool = False


class Trials:
    """Tries machines, as long as there is time.

    Parameters
    ----------
    plan_on
        Returns the makespan of a checked plan on a machine; ``None`` where none is found.
    seconds
        After which no further trial begins.
    """

    def __init__(self, plan_on: Callable[[Machine], Cycles | None], seconds: float) -> None:
        self._plan_on = plan_on
        self._ends = perf_counter() + seconds
        self._longest = 0.0
        self.count = 0

    def plan_on(self, machine: Machine) -> Cycles | None:
        """Return the makespan of a plan, or ``None`` where there is none or no time.

        There is no time where the longest trial took longer than what is left.
        """
        return self.tried(lambda: self._plan_on(machine))

    def tried(self, solved: Callable[[], Cycles | None]) -> Cycles | None:
        """Return what solving gives; ``None`` where it cannot be, or there is no time."""
        began = perf_counter()
        if began + self._longest > self._ends:
            return None
        self.count += 1
        try:
            return solved()
        except (SpmilpError, ValueError):
            return None
        finally:
            self._longest = max(self._longest, perf_counter() - began)

    def least_bytes(
        self, change: Callable[[Bytes], Machine | None], least: Bytes, step: Bytes
    ) -> tuple[Bytes, Cycles] | None:
        """Return about the fewest bytes with which there is a plan, and its makespan.

        Parameters
        ----------
        change
            The machine with so many bytes more; ``None`` where there can be no such.
        least
            Fewer are known not to suffice.
        step
            Bytes are a multiple of it.
        """
        low: Bytes = 0
        size: Bytes = align_up(max(least, 1), step)
        found: tuple[Bytes, Cycles] | None = None
        for _ in range(MOST_DOUBLINGS):
            machine = change(size)
            makespan = None if machine is None else self.plan_on(machine)
            if makespan is not None:
                found = size, makespan
                break
            low, size = size, 2 * size
        while found is not None and found[0] - low > max(step, found[0] // FINE) and low:
            size = align_up((low + found[0]) // 2, step)
            machine = change(size)
            makespan = None if machine is None else self.plan_on(machine)
            if makespan is None:
                low = size
            else:
                found = size, makespan
        return found


def remedies_for(machine: Machine, misfit: Misfit, trials: Trials) -> tuple[Remedy, ...]:
    """Return the changes that were found to make it fit, the smallest of each kind."""
    if misfit.cause is Cause.CORE:
        return tuple(_cores(machine, trials))
    if misfit.cause is Cause.ROUTE:
        return tuple(_ways(machine, misfit, trials))
    found: list[Remedy] = []
    if misfit.cause is Cause.PIECES and misfit.memory is not None:
        found += _together(machine, misfit.memory, trials)
    memory = _roomiest(machine) if misfit.memory is None else misfit.memory
    return (*found, *_larger(machine, memory, misfit, trials))


def with_memory(machine: Machine, memories: dict[MemoryIdx, Memory]) -> Machine:
    """Return a machine with some of its memories changed."""
    changed = tuple(memories.get(each.index, each) for each in machine.memories)
    return replace(machine, memories=changed)


def _larger(
    machine: Machine, memory: MemoryIdx, misfit: Misfit, trials: Trials
) -> Iterator[Remedy]:
    like = machine.memories[memory]
    size, usable = like.size or 0, like.usable or 0
    fits: Bytes = usable if misfit.usable is None else misfit.usable
    short = 0 if misfit.needed is None else max(0, misfit.needed - fits)
    is_proven = short > 0 and misfit.is_proven and misfit.cause is not Cause.TILE
    step = like.alignment
    least = short if misfit.is_proven or short else max(step, usable // 8)
    every = alike_memories(machine, memory)

    def grown(some: list[Memory]) -> Callable[[Bytes], Machine]:
        return lambda more: with_memory(
            machine, {each.index: replace(each, size=(each.size or 0) + more) for each in some}
        )

    found = trials.least_bytes(grown(every), least, step)
    if found is not None:
        more, makespan = found
        is_least = is_proven and more <= short
        larger = f"({quantities.shown_bytes(size + more)})"
        whose = of_all(like.name, len(every), "memories")
        yield Remedy(
            change=f"{more:,} B more in {whose} {larger}",
            makespan=makespan,
            bytes=more,
            least=is_least,
        )
        alone = None if len(every) == 1 else trials.plan_on(grown([like])(more))
        if alone is not None:
            yield Remedy(
                change=f"{more:,} B more in {like.name} alone {larger}",
                makespan=alone,
                bytes=more,
                least=is_least,
            )
    if like.reserved and short and short < size - usable:
        freed = [replace(each, reserved=_shrunk(each, short)) for each in every]
        freer = trials.plan_on(with_memory(machine, {each.index: each for each in freed}))
        if freer is not None:
            whose = of_all(like.name, len(every), "memories")
            yield Remedy(
                change=f"{short:,} B fewer reserved in {whose} (of {size - usable:,} B)",
                makespan=freer,
                bytes=short,
                least=is_proven,
            )


def _shrunk(memory: Memory, less: Bytes) -> tuple[ByteRange, ...]:
    """Return reserved ranges that are fewer bytes, taken away from the end of the last ones."""
    kept = []
    for each in reversed(memory.reserved):
        taken = min(less, each.end - each.start)
        less -= taken
        if each.start < each.end - taken:
            kept.append(ByteRange(each.start, each.end - taken))
    return tuple(reversed(kept))


def _together(machine: Machine, memory: MemoryIdx, trials: Trials) -> Iterator[Remedy]:
    like = machine.memories[memory]
    size = like.size or 0
    total = sum(each.end - each.start for each in like.reserved)
    every = alike_memories(machine, memory)
    for first, where in ((0, "beginning"), (size - total, "end")):
        moved = {
            each.index: replace(each, reserved=(ByteRange(first, first + total),)) for each in every
        }
        makespan = trials.plan_on(with_memory(machine, moved))
        if makespan is not None:
            whose = of_all(like.name, len(every), "memories")
            largest = max(gaps_of(moved[memory]), default=0)
            yield Remedy(
                change=f"the {total:,} reserved bytes side by side at the {where} of {whose} "
                f"(one piece of {largest:,} B)",
                makespan=makespan,
            )
            return


def _cores(machine: Machine, trials: Trials) -> Iterator[Remedy]:
    """Yield a core of a kind that has none, in the memory of a core that there is."""
    present = {core.kind for core in machine.cores}
    for kind in machine.kinds:
        if kind.index in present:
            continue
        home = machine.cores[0].memory
        core = Core(index=len(machine.cores), name=f"{kind.name}_new", kind=kind.index, memory=home)
        makespan = trials.plan_on(replace(machine, cores=(*machine.cores, core)))
        if makespan is not None:
            name = machine.memories[home].name
            yield Remedy(
                change=f"one core of kind {kind.name} that works in {name}", makespan=makespan
            )


def _ways(machine: Machine, misfit: Misfit, trials: Trials) -> Iterator[Remedy]:
    """Yield what lets an engine do it, else a link."""
    if misfit.ends is None:
        return
    needed, sources, targets = misfit.ends
    engines = list(machine.engines)
    for engine in engines:
        changes = []
        if engine.longest is not None and engine.longest < needed:
            longer = replace(engine, longest=needed)
            changes.append((f"transfers of {needed:,} B by {engine.name}", longer))
        if engine.reaches is not None:
            name = " and ".join(machine.memories[m].name for m in (sources[:1] + targets[:1]))
            wider = replace(
                engine, reaches=tuple(sorted({*engine.reaches, sources[0], targets[0]}))
            )
            changes.append((f"DMA engine {engine.name} reaches {name}", wider))
        if not (engine.loads and engine.stores):
            both = replace(engine, loads=True, stores=True)
            changes.append((f"DMA engine {engine.name} both loads and stores", both))
        for change, changed in changes:
            others = tuple(changed if each is engine else each for each in engines)
            makespan = trials.plan_on(replace(machine, engines=others))
            if makespan is not None:
                yield Remedy(change=change, makespan=makespan)
                return
    for source in sources:
        for target in targets:
            yield from _linked(machine, source, target, trials)
            return


def _linked(
    machine: Machine, source: MemoryIdx, target: MemoryIdx, trials: Trials
) -> Iterator[Remedy]:
    one, other = machine.memories[source].name, machine.memories[target].name
    rate = min((link.rate for link in machine.links), default=Fraction(1))
    there = {(link.source, link.target) for link in machine.links}
    ways = [pair for pair in ((one, other), (other, one)) if pair not in there]
    for pairs in ([way] for way in ways) if len(ways) < 2 else iter([ways[:1], ways]):
        added = tuple(
            Link(index=len(machine.links) + number, source=start, target=end, rate=rate)
            for number, (start, end) in enumerate(pairs)
        )
        makespan = trials.plan_on(replace(machine, links=(*machine.links, *added)))
        if makespan is not None:
            said = " and ".join(f"{start} → {end}" for start, end in pairs)
            yield Remedy(change=f"a link {said} of {rate} B/cycle", makespan=makespan)
            return


def _roomiest(machine: Machine) -> MemoryIdx:
    pads = [each for each in machine.memories if each.kind is MemoryKind.SPM]
    return max(pads, key=lambda each: each.usable or 0).index
