"""A plan without any skill: one core, one scratchpad, one thing after the other."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place

DRAM, SPM = 0, 1

LANES = (("float32", 1), ("float16", 1), ("int8", 1))

MACHINE = Machine(
    name="one core",
    memories=(
        Memory(index=DRAM, name="dram", kind=MemoryKind.DRAM, size=None),
        Memory(index=SPM, name="spm", kind=MemoryKind.SPM, size=1 << 28),
    ),
    kinds=(CoreKind(index=0, name="core", lanes=LANES),),
    cores=(Core(index=0, name="core0", kind=0, memory=SPM),),
    links=(
        Link(index=0, source="dram", target="spm", rate=Fraction(8)),
        Link(index=1, source="spm", target="dram", rate=Fraction(8)),
    ),
    engines=(Engine(index=0, name="dma", owner=SPM, rate=Fraction(8)),),
)

CLAIM = Claim(makespan=0, dram_traffic=0, energy=0, peak_spm=0, bound=0, bound_source="none")


@dataclass
class Script:
    """Writes a plan line by line; everything takes ten cycles and stays until the end."""

    problem: Problem
    tensors: tuple[int, ...]
    now: int = 0
    free: int = 0
    residencies: list[Residency] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    placements: dict[int, Placement] = field(default_factory=dict)

    def initial(self, buffer: int) -> int:
        """Note where a buffer is at cycle 0; return the residency."""
        given = self.problem.buffers[buffer]
        memory = DRAM if given.starts_in is None else given.starts_in
        offset = self._home(buffer) if memory == DRAM else self._take(given.bytes)
        return self._reside(buffer, memory, offset, 0)

    def load(self, slice_: int, source: int, offset: int | None = None) -> int:
        """Copy a slice from a residency into the scratchpad; return where it is then."""
        size = self.problem.slices[slice_].bytes
        place = self._take(size) if offset is None else offset
        target = self._reside(slice_, SPM, place, self.now, transfer=len(self.transfers))
        self._transfer(slice_, source, target)
        return target

    def store(self, buffer: int, source: int) -> int:
        """Copy a buffer to its place in DRAM."""
        target = self._reside(
            buffer, DRAM, self._home(buffer), self.now, transfer=len(self.transfers)
        )
        self._transfer(buffer, source, target)
        return target

    def run(self, task: int, reads: list[int], offsets: dict[int, int] | None = None) -> list[int]:
        """Run a task; return the residencies of what it writes."""
        given = self.problem.tasks[task]
        writes = []
        for buffer in given.writes:
            offset = (offsets or {}).get(buffer)
            if offset is None:
                offset = self._take(self.problem.buffers[buffer].bytes)
            writes.append(self._reside(buffer, SPM, offset, self.now, task=task))
        end, both = self.now + 10, dict[str, Any](reads=tuple(reads), writes=tuple(writes))
        if given.scratch:
            place = self._take(given.scratch)
            both["scratch"] = self._reside(None, SPM, place, self.now, size=given.scratch)
        self.placements[task] = Placement(task=task, core=0, start=self.now, end=end, **both)
        self.now += 10
        return writes

    def plan(self) -> Plan:
        """Return the plan, all residencies alive until its end."""
        return Plan(
            placements=tuple(self.placements[task] for task in sorted(self.placements)),
            residencies=tuple(
                replace(each, end=max(self.now, each.end)) for each in self.residencies
            ),
            transfers=tuple(self.transfers),
            tensors=self.tensors,
            claim=CLAIM,
            solver="by hand",
        )

    def _take(self, size: int) -> int:
        offset = self.free
        self.free += -(-size // 4) * 4
        return offset

    def _home(self, slice_: int) -> int:
        place = self.problem.buffers[self.problem.slices[slice_].buffer].place
        assert place is not None
        return self.tensors[place.tensor] + layout_at_place(self.problem, slice_).offset

    def _transfer(self, slice_: int, source: int, target: int) -> None:
        self.transfers.append(
            Transfer(
                index=len(self.transfers), slice=slice_, source=source, destinations=(target,),
                engine=0, channel=0, start=self.now, sent=self.now + 8, end=self.now + 10,
                route=(0,),
            )
        )  # fmt: skip
        self.now += 10

    def _reside(
        self, slice_: int | None, memory: int, offset: int, start: int,
        task: int | None = None, transfer: int | None = None, size: int = 0,
    ) -> int:  # fmt: skip
        index = len(self.residencies)
        size = size if slice_ is None else self.problem.slices[slice_].bytes
        self.residencies.append(
            Residency(
                index=index, slice=slice_, memory=memory, offset=offset, bytes=size, start=start,
                end=start + 1, filled_by_task=task, filled_by_transfer=transfer,
            )
        )  # fmt: skip
        return index


def home_addresses(problem: Problem) -> tuple[int, ...]:
    """Return addresses of the DRAM tensors, one behind the other from 4096 on."""
    addresses, free = [], 4096
    for tensor in problem.tensors:
        addresses.append(free)
        free += -(-tensor.bytes // 64) * 64
    return tuple(addresses)


def sequential_plan(problem: Problem) -> Plan:
    """Load every slice just before its first use, keep everything, store outputs when computed."""
    script = Script(problem, home_addresses(problem))
    initial = {
        buffer.index: script.initial(buffer.index)
        for buffer in problem.buffers
        if buffer.starts_in is not None
    }
    held: dict[int, int] = {}
    for task in problem.topological_order():
        reads = []
        for slice_ in problem.tasks[task].reads:
            buffer = problem.slices[slice_].buffer
            if slice_ not in held:
                whole = held.get(buffer)
                held[slice_] = script.load(slice_, initial[buffer]) if whole is None else whole
            reads.append(held[slice_])
        written = problem.tasks[task].writes
        for buffer, residency in zip(written, script.run(task, reads), strict=True):
            held[buffer] = residency
            if problem.buffers[buffer].ends_in is not None:
                script.store(buffer, residency)
    return script.plan()
