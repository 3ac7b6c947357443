"""Pins: what a plan has to keep to besides the rules, as numbers of a problem.

The rule of the checker, and what each of them means, is rule 11 of ``docs/format.md``.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from spmilp.units import BufferIdx, Bytes, CoreIdx, Count, Cycles, MemoryIdx, TaskIdx


class PinKind(StrEnum):
    """What a pin may fix; solvers say which of them they keep to."""

    CORES = "cores of a task"
    NOT_BEFORE = "not_before of a task"
    NOT_AFTER = "not_after of a task"
    MEMORIES = "memories of a buffer"
    ADDRESS = "address of a buffer"
    RESIDENT = "resident buffer"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPin:
    """Where and when a task runs.

    It runs on one of the ``cores``, in ascending order; empty for any. It starts at the cycle
    ``not_before`` at the earliest and has ended at ``not_after`` at the latest; ``None`` for any.
    """

    task: TaskIdx
    cores: tuple[CoreIdx, ...] = ()
    not_before: Cycles = 0
    not_after: Count | None = None

    def __post_init__(self) -> None:
        _ascends(f"pin of task {self.task}: cores", self.cores)
        if self.not_after is not None and self.not_before >= self.not_after:
            raise ValueError(
                f"pin of task {self.task}: not before {self.not_before} >= not after "
                f"{self.not_after}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferPin:
    """Where a buffer lies.

    ``memories`` are in ascending order, and no DRAM: the buffer and its slices lie in no other
    memory whose kind (scratchpad or shared) is that of one of these. In these memories the buffer
    lies only as a whole, at the offset ``address``; ``None`` for any. If it is ``resident``, it has
    in each of them one residency, of the whole, that lasts until the last task that reads any part
    of it has ended.
    """

    buffer: BufferIdx
    memories: tuple[MemoryIdx, ...]
    address: Bytes | None = None
    resident: bool = False

    def __post_init__(self) -> None:
        _ascends(f"pin of buffer {self.buffer}: memories", self.memories)
        if not self.memories:
            raise ValueError(f"pin of buffer {self.buffer}: names no memory")

    @property
    def whole(self) -> bool:
        """Whether no mere slice of the buffer may lie in the memories."""
        return self.resident or self.address is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """All pins of a problem, ascending: a row per task and buffer; forbidden cores run no task."""

    forbidden: tuple[CoreIdx, ...] = ()
    tasks: tuple[TaskPin, ...] = ()
    buffers: tuple[BufferPin, ...] = ()

    def __post_init__(self) -> None:
        _ascends("pins: forbidden cores", self.forbidden)
        _ascends("pins: tasks", tuple(pin.task for pin in self.tasks))
        _ascends("pins: buffers", tuple(pin.buffer for pin in self.buffers))

    def __bool__(self) -> bool:
        return bool(self.forbidden or self.tasks or self.buffers)

    def kinds(self) -> frozenset[PinKind]:
        """Return what is pinned."""
        asked = {
            PinKind.CORES: self.forbidden or any(pin.cores for pin in self.tasks),
            PinKind.NOT_BEFORE: any(pin.not_before for pin in self.tasks),
            PinKind.NOT_AFTER: any(pin.not_after is not None for pin in self.tasks),
            PinKind.MEMORIES: self.buffers,
            PinKind.ADDRESS: any(pin.address is not None for pin in self.buffers),
            PinKind.RESIDENT: any(pin.resident for pin in self.buffers),
        }
        return frozenset(kind for kind, some in asked.items() if some)


def _ascends(who: str, numbers: tuple[int, ...]) -> None:
    if any(one >= other for one, other in pairwise(numbers)):
        raise ValueError(f"{who} {list(numbers[:8])}: expected each once, in ascending order")


NO_PINS = Pins()
