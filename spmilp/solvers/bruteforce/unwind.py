"""From the path of a search to a plan."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.problem.strides import layout_at_place
from spmilp.solvers.bruteforce.addresses import Block, Stack
from spmilp.solvers.bruteforce.move_starts import MoveStart
from spmilp.solvers.bruteforce.search import Path, Search
from spmilp.solvers.bruteforce.task_starts import TaskStart
from spmilp.units import Bytes, Cycles, MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The tables of a plan."""

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    tensors: tuple[Bytes, ...]


@dataclass(slots=True, kw_only=True)
class _Life:
    """A stay from beginning to end."""

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


class Unwinding:
    """Follows the steps of a path from cycle 0, and finds cores, channels and addresses."""

    def __init__(self, search: Search, path: Path) -> None:
        self._given = search.given
        self._lives: dict[int, _Life] = {}
        self._over: list[tuple[int, int]] = []
        self._tasks: list[tuple[Cycles, TaskStart]] = []
        self._moves: list[tuple[Cycles, MoveStart]] = []
        steps = list(_steps(path))
        self._anchors = steps[0].node.state.anchors
        self._note_originals(steps[0])
        for before, after in pairwise(steps):
            now = before.cost.makespan
            if isinstance(after.step, TaskStart):
                self._note_task(after, after.step, now)
            elif isinstance(after.step, MoveStart):
                self._note_move(after, after.step, now)
        self._keep_outputs(path)

    def parts(self) -> Parts:
        """Return the plan's tables."""
        lives = {name: life for name, life in sorted(self._lives.items()) if life.ends}
        number = {name: index for index, name in enumerate(lives)}
        tensors, at = self._addresses(lives)
        return Parts(
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
        for memory, shelf in enumerate(root.node.state.shelves):
            for stay, name in zip(shelf.stays, root.node.names[memory], strict=True):
                self._lives[name] = self._life(stay.slice, memory, stay.residue, 0)

    def _note_task(self, path: Path, start: TaskStart, now: Cycles) -> None:
        end = now + start.cycles
        memory = self._given.groups[start.group].memory
        self._tasks.append((now, start))
        self._over += start.over
        for name, buffer in zip(
            start.writes, self._given.problem.tasks[start.task].writes, strict=True
        ):
            life = self._life(buffer, memory, _residue(path, memory, name), now)
            life.task = start.task
            life.ends.append(end)
            self._lives[name] = life
        if start.scratch is not None:
            life = _Life(
                slice=None,
                memory=memory,
                bytes=self._given.problem.tasks[start.task].scratch,
                residue=-1,
                start=now,
                ends=[end],
            )
            self._lives[start.scratch] = life
        for name in start.reads:
            self._lives[name].ends.append(end)

    def _note_move(self, path: Path, start: MoveStart, now: Cycles) -> None:
        end = now + start.passage.cycles
        self._lives[start.source].ends.append(end)
        for name, memory in zip(start.destinations, start.passage.destinations, strict=True):
            life = self._life(start.slice, memory, _residue(path, memory, name), now)
            life.transfer = len(self._moves)
            life.ends.append(end)
            self._lives[name] = life
        self._moves.append((now, start))

    def _keep_outputs(self, path: Path) -> None:
        """Let one residency of each buffer that must end in a memory last until the end."""
        for buffer in self._given.problem.buffers:
            if buffer.ends_in is None:
                continue
            shelf = path.node.state.shelves[buffer.ends_in]
            for stay, name in zip(shelf.stays, path.node.names[buffer.ends_in], strict=True):
                if stay.slice == buffer.index and not stay.leaving:
                    self._lives[name].ends.append(max(1, path.cost.makespan))
                    break

    def _life(self, slice_: int, memory: MemoryIdx, residue: int, start: Cycles) -> _Life:
        size = self._given.problem.slices[slice_].bytes
        return _Life(slice=slice_, memory=memory, bytes=size, residue=residue, start=start)

    def _placements(self, number: dict[int, int]) -> tuple[Placement, ...]:
        busy = [0] * len(self._given.machine.cores)
        found = {}
        for now, start in self._tasks:
            cores = self._given.groups[start.group].cores
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
        busy = [[0] * engine.channels for engine in self._given.machine.engines]
        found = []
        for index, (now, start) in enumerate(self._moves):
            channels = busy[start.passage.engine]
            channel = next(c for c, until in enumerate(channels) if until <= now)
            channels[channel] = now + start.passage.cycles
            found.append(
                Transfer(
                    index=index,
                    slice=start.slice,
                    source=number[start.source],
                    destinations=tuple(number[name] for name in start.destinations),
                    engine=start.passage.engine,
                    channel=channel,
                    start=now,
                    end=now + start.passage.cycles,
                    route=start.passage.links,
                )
            )
        return tuple(found)

    def _addresses(self, lives: dict[int, _Life]) -> tuple[tuple[Bytes, ...], dict[int, Bytes]]:
        problem = self._given.problem
        tensors = [0] * len(problem.tensors)
        at: dict[int, Bytes] = {}
        for memory in range(len(self._given.machine.memories)):
            blocks = [*self._blocks_of_tensors(memory), *self._blocks(lives, memory)]
            stack = Stack(self._given, memory, blocks)
            found = stack.any() if self._given.is_dram[memory] else stack.lowest()
            if found is None:
                raise RuntimeError(f"memory {memory}: the search left no addresses for its plan")
            for name, address in found.items():
                if isinstance(name, int):
                    at[name] = address
                else:
                    tensors[int(name)] = address
        for name, life in lives.items():
            home = None if life.slice is None else self._given.home(life.slice, life.memory)
            if home is not None and life.slice is not None:
                at[name] = tensors[home] + layout_at_place(problem, life.slice).offset
        return tuple(tensors), at

    def _blocks_of_tensors(self, memory: MemoryIdx) -> Iterator[Block]:
        for tensor, anchor in zip(self._given.problem.tensors, self._anchors, strict=True):
            if tensor.memory == memory:
                yield Block((str(tensor.index),), ((0, None, tensor.bytes),), anchor)

    def _blocks(self, lives: dict[int, _Life], memory: MemoryIdx) -> Iterator[Block]:
        """Yield what is packed in a memory; stays in place of each other are one block."""
        packed = {
            name: life
            for name, life in lives.items()
            if life.memory == memory
            and (life.slice is None or self._given.home(life.slice, memory) is None)
        }
        successor = dict(self._over)
        replaced = set(successor.values())
        for name in packed:
            if name not in replaced:
                names = tuple(_chain(name, successor))
                parts = tuple((packed[n].start, packed[n].end, packed[n].bytes) for n in names)
                yield Block(names, parts, packed[name].residue)


def _steps(path: Path) -> Iterable[Path]:
    found = [path]
    while found[-1].before is not None:
        found.append(found[-1].before)
    return reversed(found)


def _residue(path: Path, memory: MemoryIdx, name: int) -> int:
    position = path.node.names[memory].index(name)
    return path.node.state.shelves[memory].stays[position].residue


def _chain(name: int, successor: dict[int, int]) -> Iterator[int]:
    link: int | None = name
    while link is not None:
        yield link
        link = successor.get(link)
