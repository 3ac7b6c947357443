"""From the path of a search to a plan."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.problem.strides import layout_at_place
from spmilp.units import Bytes, Cycles, MemoryIdx
from tests.oracle.addresses import AddressSearch, Block
from tests.oracle.search import Path, Search
from tests.oracle.task_starts import TaskStart
from tests.oracle.transfer_starts import TransferStart


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTables:
    """The tables of a plan."""

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    tensors: tuple[Bytes, ...]


@dataclass(slots=True, kw_only=True)
class _Life:
    """A residency from beginning to end."""

    slice: int | None
    memory: MemoryIdx
    bytes: Bytes
    residue: int
    start: Cycles
    task: int | None = None
    transfer: int | None = None
    ends: list[Cycles] = field(default_factory=list)

    @property
    def end(self) -> Cycles:
        return max(self.ends, default=self.start)


class Reconstruction:
    """Follows the steps of a path from cycle 0, and finds cores, channels and addresses."""

    def __init__(self, search: Search, path: Path) -> None:
        self._tables = search.tables
        self._lives: dict[int, _Life] = {}
        self._in_place: list[tuple[int, int]] = []
        self._tasks: list[tuple[Cycles, TaskStart]] = []
        self._transfer_starts: list[tuple[Cycles, TransferStart]] = []
        steps = list(_steps(path))
        self._tensor_residues = steps[0].node.state.tensor_residues
        self._note_originals(steps[0])
        for before, after in pairwise(steps):
            now = before.cost.makespan
            if isinstance(after.step, TaskStart):
                self._note_task(after, after.step, now)
            elif isinstance(after.step, TransferStart):
                self._note_transfer(after, after.step, now)
        self._keep_outputs(path)

    def parts(self) -> PlanTables:
        """Return the plan's tables."""
        lives = {name: life for name, life in sorted(self._lives.items()) if life.ends}
        number = {name: index for index, name in enumerate(lives)}
        tensors, at = self._addresses(lives)
        return PlanTables(
            placements=self._placements(number),
            residencies=tuple(
                Residency(
                    index=number[name],
                    slice=life.slice,
                    memory=life.memory,
                    offset=at[name],
                    bytes=life.bytes,
                    start=life.start,
                    end=life.end,
                    filled_by_task=life.task,
                    filled_by_transfer=life.transfer,
                )
                for name, life in lives.items()
            ),
            transfers=self._transfers(number),
            tensors=tensors,
        )

    def _note_originals(self, root: Path) -> None:
        for memory, memory_state in enumerate(root.node.state.memories):
            for residency, name in zip(
                memory_state.residencies, root.node.names[memory], strict=True
            ):
                self._lives[name] = self._life(residency.slice, memory, residency.residue, 0)

    def _note_task(self, path: Path, start: TaskStart, now: Cycles) -> None:
        end = now + start.cycles
        memory = self._tables.groups[start.group].memory
        self._tasks.append((now, start))
        self._in_place += start.in_place
        for name, buffer in zip(
            start.writes, self._tables.problem.tasks[start.task].writes, strict=True
        ):
            life = self._life(buffer, memory, _residue(path, memory, name), now)
            life.task = start.task
            life.ends.append(end)
            self._lives[name] = life
        if start.scratch is not None:
            life = _Life(
                slice=None,
                memory=memory,
                bytes=self._tables.problem.tasks[start.task].scratch,
                residue=-1,
                start=now,
                ends=[end],
            )
            self._lives[start.scratch] = life
        for name in start.reads:
            self._lives[name].ends.append(end)

    def _note_transfer(self, path: Path, start: TransferStart, now: Cycles) -> None:
        end = now + start.option.cycles
        self._lives[start.source].ends.append(end)
        for name, memory in zip(start.destinations, start.option.destinations, strict=True):
            life = self._life(start.slice, memory, _residue(path, memory, name), now)
            life.transfer = len(self._transfer_starts)
            life.ends.append(end)
            self._lives[name] = life
        self._transfer_starts.append((now, start))

    def _keep_outputs(self, path: Path) -> None:
        """Let one residency of each buffer that must end in a memory last until the end."""
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in is None:
                continue
            memory_state = path.node.state.memories[buffer.ends_in]
            for residency, name in zip(
                memory_state.residencies, path.node.names[buffer.ends_in], strict=True
            ):
                if residency.slice == buffer.index and not residency.leaving:
                    self._lives[name].ends.append(max(1, path.cost.makespan))
                    break

    def _life(self, slice_: int, memory: MemoryIdx, residue: int, start: Cycles) -> _Life:
        size = self._tables.problem.slices[slice_].bytes
        return _Life(slice=slice_, memory=memory, bytes=size, residue=residue, start=start)

    def _placements(self, number: dict[int, int]) -> tuple[Placement, ...]:
        busy = [0] * len(self._tables.machine.cores)
        found = {}
        for now, start in self._tasks:
            cores = self._tables.groups[start.group].cores
            core = next(core for core in cores if busy[core] <= now)
            busy[core] = now + start.cycles
            found[start.task] = Placement(
                task=start.task,
                core=core,
                start=now,
                end=now + start.cycles,
                reads=tuple(number[name] for name in start.reads),
                writes=tuple(number[name] for name in start.writes),
                scratch=None if start.scratch is None else number[start.scratch],
            )
        return tuple(found[task] for task in sorted(found))

    def _transfers(self, number: dict[int, int]) -> tuple[Transfer, ...]:
        busy = [[0] * engine.channels for engine in self._tables.machine.engines]
        found = []
        for index, (now, start) in enumerate(self._transfer_starts):
            channels = busy[start.option.engine]
            channel = next(c for c, until in enumerate(channels) if until <= now)
            channels[channel] = now + start.option.cycles
            found.append(
                Transfer(
                    index=index,
                    slice=start.slice,
                    source=number[start.source],
                    destinations=tuple(number[name] for name in start.destinations),
                    engine=start.option.engine,
                    channel=channel,
                    start=now,
                    end=now + start.option.cycles,
                    route=start.option.links,
                )
            )
        return tuple(found)

    def _addresses(self, lives: dict[int, _Life]) -> tuple[tuple[Bytes, ...], dict[int, Bytes]]:
        problem = self._tables.problem
        tensors = [0] * len(problem.tensors)
        at: dict[int, Bytes] = {}
        for memory in range(len(self._tables.machine.memories)):
            blocks = [*self._blocks_of_tensors(memory), *self._blocks(lives, memory)]
            stack = AddressSearch(self._tables, memory, blocks)
            found = stack.any() if self._tables.is_dram[memory] else stack.lowest()
            if found is None:
                raise RuntimeError(f"memory {memory}: the search left no addresses for its plan")
            for name, address in found.items():
                if isinstance(name, int):
                    at[name] = address
                else:
                    tensors[int(name)] = address
        for name, life in lives.items():
            home = None if life.slice is None else self._tables.home(life.slice, life.memory)
            if home is not None and life.slice is not None:
                at[name] = tensors[home] + layout_at_place(problem, life.slice).offset
        return tuple(tensors), at

    def _blocks_of_tensors(self, memory: MemoryIdx) -> Iterator[Block]:
        for tensor, residue in zip(
            self._tables.problem.tensors, self._tensor_residues, strict=True
        ):
            if tensor.memory == memory:
                yield Block((str(tensor.index),), ((0, None, tensor.bytes),), residue)

    def _blocks(self, lives: dict[int, _Life], memory: MemoryIdx) -> Iterator[Block]:
        """Yield the packed residencies of a memory; those in place of each other are one block."""
        packed = {
            name: life
            for name, life in lives.items()
            if life.memory == memory
            and (life.slice is None or self._tables.home(life.slice, memory) is None)
        }
        successor = dict(self._in_place)
        replaced = set(successor.values())
        for name in packed:
            if name not in replaced:
                names = tuple(_chain(name, successor))
                parts = tuple((packed[n].start, packed[n].end, packed[n].bytes) for n in names)
                slices = (packed[n].slice for n in names)
                pinned = (
                    None if slice_ is None else self._tables.address(slice_, memory)
                    for slice_ in slices
                )
                fixed = next((address for address in pinned if address is not None), None)
                yield Block(names, parts, packed[name].residue, fixed)


def _steps(path: Path) -> Iterable[Path]:
    found = [path]
    while found[-1].before is not None:
        found.append(found[-1].before)
    return reversed(found)


def _residue(path: Path, memory: MemoryIdx, name: int) -> int:
    position = path.node.names[memory].index(name)
    return path.node.state.memories[memory].residencies[position].residue


def _chain(name: int, successor: dict[int, int]) -> Iterator[int]:
    link: int | None = name
    while link is not None:
        yield link
        link = successor.get(link)
