"""The loads into memories and the stores to DRAM that some plan may have.

What each takes is the least that any of its transfer options takes: its cycles, and the rates on
those links and the channels of those engines that all its options have in common.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spmilp.solvers.cpsat.variables import Interval, Literal, Number, Variables
from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import BufferIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx

DRAM, ELSEWHERE = True, False
"""Where a load comes from."""


class LoadKey(NamedTuple):
    """Which load of a slice into a memory it is.

    Parameters
    ----------
    reader
        The task that is the first there to read what has arrived. ``None`` where loads are not
        told apart, and only the first one is in the model; and for what no task there reads.
    """

    slice: SliceIdx
    memory: MemoryIdx
    reader: TaskIdx | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFrom:
    """A load out of a DRAM, or from elsewhere, and the least that it takes.

    Parameters
    ----------
    alone
        Whether no other load can be part of the same transfer.
    """

    taken: Literal
    interval: Interval
    cycles: Cycles
    options: tuple[TransferOption, ...]
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A transfer of a slice into a memory, if there is one."""

    present: Literal
    start: Number
    valid: Number
    origins: dict[bool, LoadFrom]


class Loads:
    """The loads that some plan may have.

    A residency is *private* if nothing but reads of its very slice by the one core of its memory
    can be served by it. Of such slices each load is in the model, told apart by the first task that
    reads it; of others, of which one transfer of the whole buffer may bring several at once, only
    the first load of the slice into the memory.

    Parameters
    ----------
    told_apart
        Without it no residency counts as private: a smaller and weaker model.

    Attributes
    ----------
    into
        The loads into memories that are no DRAM.
    stores
        The first store to a DRAM of each slice that does not begin there.
    shared
        The first transfer out of a DRAM of each slice of which one can serve several memories.
    """

    def __init__(self, variables: Variables, *, told_apart: bool) -> None:
        self.variables = variables
        self.tables = variables.tables
        self._model = variables.model
        self._machine = self.tables.machine
        self._told_apart = told_apart
        self.candidates = CandidateMemories(self.tables)
        self.into: dict[LoadKey, Load] = dict(self._make())
        self.stores: dict[SliceIdx, Load] = dict(self._make_stores())
        self.shared: dict[SliceIdx, LoadFrom] = dict(self._make_shared())

    def is_private(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether each load of a slice into a memory is in the model."""
        tables, buffer = self.tables, self.buffer(slice_)
        if not self._told_apart or not tables.has_single_core(memory) or tables.is_dram(memory):
            return False
        if self._begins(slice_, memory):
            return False
        if slice_ == buffer:
            return not tables.parts[buffer]
        return memory not in self.candidates.of(buffer)

    def private(self) -> Iterator[tuple[SliceIdx, MemoryIdx]]:
        """Yield what :meth:`is_private`, in order."""
        for slice_ in self.candidates.slices():
            for memory in self.candidates.of(slice_):
                if self.is_private(slice_, memory):
                    yield slice_, memory

    def readers(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[TaskIdx, ...]:
        """Return the tasks that read a slice and may run in a memory."""
        tasks = self.variables.tasks
        readers = self.tables.readers[slice_]
        return tuple(task for task, _ in readers if memory in tasks[task].memories)

    def transfers(self) -> Iterator[tuple[CandidateResidency, LoadKey | None, LoadFrom]]:
        """Yield what holds links and engines, each under a key of its own."""
        for key, load in self.into.items():
            number = 0 if key.reader is None else key.reader + 1
            for origin, one in load.origins.items():
                yield CandidateResidency(key.slice, key.memory, 4 * number + int(origin)), key, one
        for slice_, store in self.stores.items():
            for one in store.origins.values():
                yield CandidateResidency(slice_, one.options[0].destination, 2), None, one
        for slice_, one in self.shared.items():
            yield CandidateResidency(slice_, -1, 3), None, one

    def buffer(self, slice_: SliceIdx) -> BufferIdx:
        """Return the buffer of a slice."""
        return self.tables.problem.slices[slice_].buffer

    def _begins(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        return self.tables.problem.buffers[self.buffer(slice_)].starts_in == memory

    def _make(self) -> Iterator[tuple[LoadKey, Load]]:
        for slice_ in self.candidates.slices():
            into = {
                memory: self._options_into(slice_, memory)
                for memory in self.candidates.of(slice_)
                if not self.tables.is_dram(memory) and not self._begins(slice_, memory)
            }
            passed_on = any(options[ELSEWHERE] for options in into.values())
            for memory, options in into.items():
                if any(options.values()):
                    for key in self._keys(slice_, memory, passed_on):
                        yield key, self._load(key, options)

    def _keys(self, slice_: SliceIdx, memory: MemoryIdx, passed_on: bool) -> Iterator[LoadKey]:
        """Yield the loads of a slice into a memory.

        Where each has its reader, there is one more that nobody reads there: it is copied on, or
        read by other cores.
        """
        if not self.is_private(slice_, memory):
            yield LoadKey(slice_, memory, None)
            return
        for reader in self.readers(slice_, memory):
            yield LoadKey(slice_, memory, reader)
        if passed_on or self._machine.remote is not None:
            yield LoadKey(slice_, memory, None)

    def _load(self, key: LoadKey, options: Mapping[bool, tuple[TransferOption, ...]]) -> Load:
        name = f"slice{key.slice} into memory{key.memory} for {key.reader}"
        start, present = self.variables.cycle(f"{name} start"), self.variables.literal(name)
        able = {origin: some for origin, some in options.items() if some}
        least = {origin: min(one.cycles for one in some) for origin, some in able.items()}
        valid: Number = start + next(iter(least.values()))
        if len(set(least.values())) > 1:
            valid = self.variables.cycle(f"{name} valid")
        origins = {}
        for origin, some in able.items():
            taken = present
            if len(able) > 1:
                taken = self.variables.literal(f"{name} out of {'DRAM' if origin else 'another'}")
            if len(set(least.values())) > 1:
                self._model.add(valid == start + least[origin]).only_enforce_if(taken)
            interval = self._model.new_optional_fixed_size_interval_var(
                start, least[origin], taken, f"{name} {origin}"
            )
            origins[origin] = LoadFrom(
                taken=taken,
                interval=interval,
                cycles=least[origin],
                options=some,
                alone=not any(self._machine.engines[one.engine].multicast for one in some),
            )
        if len(able) > 1:
            self._model.add(sum(one.taken for one in origins.values()) == present)
        return Load(present=present, start=start, valid=valid, origins=origins)

    def _options_into(
        self, slice_: SliceIdx, memory: MemoryIdx
    ) -> dict[bool, tuple[TransferOption, ...]]:
        found: dict[bool, dict[TransferOption, None]] = {DRAM: {}, ELSEWHERE: {}}
        for holder in self.tables.holders(slice_):
            for source in self.candidates.of(holder):
                if source != memory:
                    able = self.tables.transfers.out_of(holder, slice_, source, memory)
                    found[self.tables.is_dram(source)].update(dict.fromkeys(able))
        return {origin: tuple(some) for origin, some in found.items()}

    def _make_stores(self) -> Iterator[tuple[SliceIdx, Load]]:
        for slice_ in self.candidates.slices():
            starts = self.tables.problem.buffers[self.buffer(slice_)].starts_in
            if starts is not None and self.tables.is_dram(starts):
                continue
            options = tuple(
                option
                for memory in self.candidates.of(slice_)
                if self.tables.is_dram(memory)
                for option in self._options_into(slice_, memory)[ELSEWHERE]
            )
            if options:
                key = LoadKey(slice_, options[0].destination, None)
                yield slice_, self._load(key, {ELSEWHERE: options})

    def _make_shared(self) -> Iterator[tuple[SliceIdx, LoadFrom]]:
        for slice_ in self.candidates.slices():
            loads = [
                load
                for key, load in self.into.items()
                if key.slice == slice_ and DRAM in load.origins
            ]
            out = [load.origins[DRAM] for load in loads]
            if all(one.alone for one in out):
                continue
            name = f"slice{slice_} out of DRAM"
            start, taken = self.variables.cycle(f"{name} start"), self.variables.literal(name)
            cycles = min(one.cycles for one in out)
            interval = self._model.new_optional_fixed_size_interval_var(start, cycles, taken, name)
            for load, one in zip(loads, out, strict=True):
                self._model.add_implication(one.taken, taken)
                self._model.add(start + cycles <= load.valid).only_enforce_if(one.taken)
            options = tuple(option for one in out for option in one.options)
            yield (
                slice_,
                LoadFrom(
                    taken=taken, interval=interval, cycles=cycles, options=options, alone=True
                ),
            )
