"""Random problems in which tasks feed several others, and several feed one, with room for all.

Each number gives one problem, always the same. Its machine has up to five scratchpads of one or two
cores each, and often one of these: remote reads, a shared memory on the way to DRAM, multicast, a
second kind of core. Transfers between scratchpads take about as long as tasks.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from spmilp.machine.machine import (
    Core,
    CoreKind,
    Engine,
    Link,
    Machine,
    Memory,
    MemoryKind,
    RemoteReads,
)
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task

DRAM = 0
ROW = 8


def fan_problem(number: int, most_middle: int = 6) -> Problem:
    """Return the problem of a number: one or two stages of a task, some behind it, one behind all.

    Parameters
    ----------
    most_middle
        Tasks between two others at most; with two of them there is one stage.
    """
    random = Random(number)
    machine = _machine(random)
    contents = _Contents(random, len(machine.kinds))
    roots: Sequence[int] = [contents.task([contents.buffer(starts=True)])]
    for _ in range(1 if most_middle == 2 else random.randint(1, 2)):
        middle = []
        for _ in range(random.randint(2, most_middle)):
            read = [contents.part(random.choice(roots))]
            if random.random() < 0.3:
                read.append(contents.buffer(starts=True))
            middle.append(contents.task(read, ends=random.random() < 0.1))
        roots = [
            contents.task([contents.part(b) for b in random.sample(middle, len(middle))])
            for _ in range(random.choice([1, 1, 2]) if most_middle > 2 else 1)
        ]
    contents.task([contents.part(b) for b in roots], ends=True)
    return contents.problem(f"fan {number}", machine)


class _Contents:
    """Buffers, slices and tasks, one after another."""

    def __init__(self, random: Random, kinds: int) -> None:
        self._random = random
        self._kinds = kinds
        self._cycles = random.choice([3, 12, 40])
        self._tensors: list[DramTensor] = []
        self._buffers: list[Buffer] = []
        self._parts: list[tuple[int, int]] = []
        self._tasks: list[Task] = []

    def buffer(self, *, starts: bool = False, ends: bool = False) -> int:
        index, rows = len(self._buffers), self._random.choice([1, 2, 4])
        if starts or ends:
            tensor = DramTensor(
                index=len(self._tensors), name=f"tensor{index}", kind=BufferKind.INPUT,
                memory=DRAM, shape=(rows, ROW), item=1,
            )  # fmt: skip
            self._tensors.append(tensor)
        place = Place(len(self._tensors) - 1, (0, 0)) if starts or ends else None
        self._buffers.append(
            Buffer(
                index=index, name=f"b{index}", kind=BufferKind.INTERMEDIATE, shape=(rows, ROW),
                starts_in=DRAM if starts else None, ends_in=DRAM if ends else None, place=place,
            )
        )  # fmt: skip
        return index

    def part(self, buffer: int) -> int:
        """Return a buffer, or -1, -2 ... for one of its rows: a slice yet without a number."""
        rows = self._buffers[buffer].shape[0]
        if rows == 1 or self._random.random() < 0.5:
            return buffer
        self._parts.append((buffer, self._random.randrange(rows)))
        return -len(self._parts)

    def task(self, reads: Sequence[int], *, ends: bool = False) -> int:
        """Add a task that writes one buffer; return that."""
        written, base, random = self.buffer(ends=ends), self._cycles, self._random
        cycles: list[int | None] = [base + random.choice([0, 0, 1, 5]) for _ in range(self._kinds)]
        if self._kinds > 1 and random.random() < 0.3:
            cycles[random.randrange(2)] = None
        self._tasks.append(
            Task(
                index=len(self._tasks), name=f"t{len(self._tasks)}", cycles=tuple(cycles),
                reads=tuple(dict.fromkeys(reads)), writes=(written,),
            )
        )  # fmt: skip
        return written

    def problem(self, name: str, machine: Machine) -> Problem:
        whole = [
            Slice(index=b.index, buffer=b.index, start=(0, 0), extent=b.shape, bytes=b.bytes)
            for b in self._buffers
        ]
        rows = [
            Slice(index=len(whole) + n, buffer=b, start=(row, 0), extent=(1, ROW), bytes=ROW)
            for n, (b, row) in enumerate(self._parts)
        ]
        return Problem(
            name=name,
            machine=machine,
            tensors=tuple(self._tensors),
            buffers=tuple(self._buffers),
            slices=(*whole, *rows),
            # Parts of buffers have their numbers only here.
            tasks=tuple(
                replace(task, reads=tuple(r if r >= 0 else len(whole) - 1 - r for r in task.reads))
                for task in self._tasks
            ),
        )


def _machine(random: Random) -> Machine:
    spms, each = random.choice([1, 2, 2, 3, 4, 5]), random.choice([1, 1, 2])
    staged, casts = random.random() < 0.2, random.random() < 0.3
    names = ["dram", *(f"spm{n}" for n in range(spms)), *(["l2"] if staged else [])]
    sorts = [MemoryKind.DRAM, *[MemoryKind.SPM] * spms, MemoryKind.SHARED]
    above = spms + 1 if staged else DRAM
    rate = Fraction(random.choice([1, 2, 8]), random.choice([1, 3]))
    near = random.random() < 0.8
    engines = [
        Engine(
            index=n, name=f"dma{n}", owner=1 + n, channels=random.choice([1, 2]),
            reaches=(above, *(range(1, 1 + spms) if near else ())), setup=random.choice([0, 2, 9]),
            rate=rate * random.choice([1, 2]), multicast=casts,
        )
        for n in range(spms)
    ]  # fmt: skip
    if staged:
        engines.append(Engine(index=spms, name="top", owner=above, reaches=(DRAM,), rate=rate))
    kinds = random.choice([1, 1, 1, 2])
    hub = [(a, b) for name in names for a, b in ((name, "hub"), ("hub", name))]
    remote = RemoteReads(cycles_per_byte_hop=Fraction(1, random.choice([2, 8])))
    return Machine(
        name="fan",
        memories=tuple(
            Memory(index=n, name=name, kind=sort, size=None if n == DRAM else 1024)
            for n, (name, sort) in enumerate(zip(names, sorts, strict=False))
        ),
        kinds=tuple(CoreKind(index=k, name=f"kind{k}") for k in range(kinds)),
        cores=tuple(
            Core(index=c, name=f"core{c}", kind=c % kinds, memory=1 + c % spms)
            for c in range(max(spms * each, kinds))
        ),
        links=tuple(
            Link(index=i, source=a, target=b, rate=rate * random.choice([1, 1, 2]), latency=i % 2)
            for i, (a, b) in enumerate(hub)
        ),
        engines=tuple(engines),
        remote=remote if spms > 1 and random.random() < 0.2 else None,
    )
