"""All arrivals of a problem, and the stores to DRAM.

What each arrival takes is the least that any of its ways takes: its cycles, and the rates on those
links and the channels of those engines that all its ways have in common.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.cpsat.arrivals.kinds import DRAM, ELSEWHERE, Arrival, Key, Kind
from spmilp.solvers.cpsat.variables import Number, Variables
from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import BufferIdx, MemoryIdx, SliceIdx, TaskIdx


class Arrivals:
    """The arrivals that some plan may have.

    A residency is *private* if nothing but reads of its very slice by the one core of its memory
    can be served by it. Of such slices each arrival is in the model, told apart by the first task
    that reads it; of others, of which one transfer of the whole buffer may bring several at once,
    only the first arrival of the slice in the memory.

    Parameters
    ----------
    told_apart
        Without it no residency counts as private: a smaller and weaker model.

    Attributes
    ----------
    into
        The arrivals in memories that are no DRAM.
    stores
        The first store to a DRAM of each slice that does not begin there.
    shared
        The first transfer out of a DRAM of each slice of which one can serve several memories.
    """

    def __init__(
        self, cp: cp_model.CpModel, tables: ProblemTables, variables: Variables, *, told_apart: bool
    ) -> None:
        self._cp = cp
        self._tables = tables
        self._machine = tables.machine
        self._variables = variables
        self.candidates = CandidateMemories(tables)
        cores = Counter(core.memory for core in tables.machine.cores)
        self._of_one_core = {m for m, count in cores.items() if count == 1 and told_apart}
        self.into: dict[Key, Arrival] = dict(self._make())
        self.stores: dict[SliceIdx, Arrival] = dict(self._make_stores())
        self.shared: dict[SliceIdx, Kind] = dict(self._make_shared())

    def is_private(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether each arrival of a slice in a memory is in the model."""
        buffer = self.buffer(slice_)
        if memory not in self._of_one_core or self.is_dram(memory) or self._begins(slice_, memory):
            return False
        if slice_ == buffer:
            return not self._tables.parts[buffer]
        return memory not in self.candidates.of(buffer)

    def private(self) -> Iterator[tuple[SliceIdx, MemoryIdx]]:
        """Yield what :meth:`is_private`, in order."""
        for slice_ in self.candidates.slices():
            for memory in self.candidates.of(slice_):
                if self.is_private(slice_, memory):
                    yield slice_, memory

    def readers(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[TaskIdx, ...]:
        """Return the tasks that read a slice and may run in a memory."""
        tasks = self._variables.tasks
        readers = self._tables.readers[slice_]
        return tuple(task for task, _ in readers if memory in tasks[task].memories)

    def all_kinds(self) -> Iterator[tuple[CandidateResidency, Key | None, Kind]]:
        """Yield what holds links and engines, numbered so that each is known by its stay."""
        for key, arrival in self.into.items():
            number = 0 if key.reader is None else key.reader + 1
            for kind, some in arrival.kinds.items():
                yield CandidateResidency(key.slice, key.memory, 4 * number + int(kind)), key, some
        for slice_, store in self.stores.items():
            for some in store.kinds.values():
                yield CandidateResidency(slice_, some.ways[0].destination, 2), None, some
        for slice_, some in self.shared.items():
            yield CandidateResidency(slice_, -1, 3), None, some

    def buffer(self, slice_: SliceIdx) -> BufferIdx:
        """Return the buffer of a slice."""
        return self._tables.problem.slices[slice_].buffer

    def is_dram(self, memory: MemoryIdx) -> bool:
        """Say whether a memory is a DRAM."""
        return self._machine.memories[memory].kind is MemoryKind.DRAM

    def _begins(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        return self._tables.problem.buffers[self.buffer(slice_)].starts_in == memory

    def _make(self) -> Iterator[tuple[Key, Arrival]]:
        for slice_ in self.candidates.slices():
            into = {
                memory: self._ways_into(slice_, memory)
                for memory in self.candidates.of(slice_)
                if not self.is_dram(memory) and not self._begins(slice_, memory)
            }
            passed_on = any(ways[ELSEWHERE] for ways in into.values())
            for memory, ways in into.items():
                if any(ways.values()):
                    for key in self._keys(slice_, memory, passed_on):
                        yield key, self._arrival(key, ways)

    def _keys(self, slice_: SliceIdx, memory: MemoryIdx, passed_on: bool) -> Iterator[Key]:
        """Yield the arrivals of a slice in a memory.

        Where each has its reader, there is one more that nobody reads there: it is copied on, or
        read by other cores.
        """
        if not self.is_private(slice_, memory):
            yield Key(slice_, memory, None)
            return
        for reader in self.readers(slice_, memory):
            yield Key(slice_, memory, reader)
        if passed_on or self._machine.remote is not None:
            yield Key(slice_, memory, None)

    def _arrival(self, key: Key, ways: Mapping[bool, tuple[TransferOption, ...]]) -> Arrival:
        name = f"slice{key.slice} into memory{key.memory} for {key.reader}"
        start, present = self._variables.cycle(f"{name} start"), self._variables.literal(name)
        able = {kind: some for kind, some in ways.items() if some}
        least = {kind: min(way.cycles for way in some) for kind, some in able.items()}
        valid: Number = start + next(iter(least.values()))
        if len(set(least.values())) > 1:
            valid = self._variables.cycle(f"{name} valid")
        kinds = {}
        for kind, some in able.items():
            taken = present
            if len(able) > 1:
                taken = self._variables.literal(f"{name} out of {'DRAM' if kind else 'another'}")
            if len(set(least.values())) > 1:
                self._cp.add(valid == start + least[kind]).only_enforce_if(taken)
            interval = self._cp.new_optional_fixed_size_interval_var(
                start, least[kind], taken, f"{name} {kind}"
            )
            alone = not any(self._machine.engines[way.engine].multicast for way in some)
            kinds[kind] = Kind(
                taken=taken, interval=interval, cycles=least[kind], ways=some, alone=alone
            )
        if len(able) > 1:
            self._cp.add(sum(kind.taken for kind in kinds.values()) == present)
        return Arrival(present=present, start=start, valid=valid, kinds=kinds)

    def _ways_into(
        self, slice_: SliceIdx, memory: MemoryIdx
    ) -> dict[bool, tuple[TransferOption, ...]]:
        found: dict[bool, dict[TransferOption, None]] = {DRAM: {}, ELSEWHERE: {}}
        for holder in dict.fromkeys((slice_, self.buffer(slice_))):
            for source in self.candidates.of(holder):
                if source == memory:
                    continue
                for way in self._tables.transfers.between(slice_, source, memory):
                    if self._tables.transfers.can_copy(way, slice_, holder):
                        found[self.is_dram(source)][way] = None
        return {kind: tuple(some) for kind, some in found.items()}

    def _make_stores(self) -> Iterator[tuple[SliceIdx, Arrival]]:
        for slice_ in self.candidates.slices():
            buffer = self._tables.problem.buffers[self.buffer(slice_)]
            if buffer.starts_in is not None and self.is_dram(buffer.starts_in):
                continue
            ways = tuple(
                way
                for memory in self.candidates.of(slice_)
                if self.is_dram(memory)
                for way in self._ways_into(slice_, memory)[ELSEWHERE]
            )
            if ways:
                key = Key(slice_, ways[0].destination, None)
                yield slice_, self._arrival(key, {ELSEWHERE: ways})

    def _make_shared(self) -> Iterator[tuple[SliceIdx, Kind]]:
        for slice_ in self.candidates.slices():
            out = [
                arrival
                for key, arrival in self.into.items()
                if key.slice == slice_ and DRAM in arrival.kinds
            ]
            kinds = [arrival.kinds[DRAM] for arrival in out]
            if all(kind.alone for kind in kinds):
                continue
            name = f"slice{slice_} out of DRAM"
            start, taken = self._variables.cycle(f"{name} start"), self._variables.literal(name)
            cycles = min(kind.cycles for kind in kinds)
            interval = self._cp.new_optional_fixed_size_interval_var(start, cycles, taken, name)
            for arrival, kind in zip(out, kinds, strict=True):
                self._cp.add_implication(kind.taken, taken)
                self._cp.add(start + cycles <= arrival.valid).only_enforce_if(kind.taken)
            ways = tuple(way for kind in kinds for way in kind.ways)
            yield (
                slice_,
                Kind(taken=taken, interval=interval, cycles=cycles, ways=ways, alone=True),
            )
