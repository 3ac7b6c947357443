"""A plan: where and when every task runs, every slice lies and every transfer moves."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec import Meta

from spmilp.problem.objective import Quantity
from spmilp.units import (
    Amount,
    Bytes,
    CoreIdx,
    Count,
    Cycles,
    EngineIdx,
    LinkIdx,
    MemoryIdx,
    ResidencyIdx,
    SliceIdx,
    TaskIdx,
    Total,
    TransferIdx,
    WideNumber,
)

MOST_INSTANCES = 4
"""No residency goes on for more periods."""

Instances: TypeAlias = Annotated[tuple[Bytes, ...], Meta(max_length=MOST_INSTANCES - 1)]
"""Addresses behind the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A task on a core during ``[start, end)``.

    ``reads`` and ``writes`` are the residencies that serve each slice of ``Task.reads`` and hold
    each buffer of ``Task.writes``, in that order; ``scratch`` is that of its scratch bytes,
    ``None`` when it needs none.
    """

    task: TaskIdx
    core: CoreIdx
    start: Cycles
    end: Cycles
    reads: tuple[ResidencyIdx, ...] = ()
    writes: tuple[ResidencyIdx, ...] = ()
    scratch: ResidencyIdx | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """A slice, or scratch, in one memory during ``[start, end)`` at ``[offset, offset + bytes)``.

    It is valid from the end of what fills it, and from its start when nothing has to: a buffer that
    is there at cycle 0, or scratch.

    Parameters
    ----------
    slice
        What it holds; ``None`` for a task's scratch.
    offset
        Address of the first byte. A slice of a buffer that has a place in a tensor of this DRAM
        lies there, at the strides of the tensor; everything else lies packed.
    bytes
        Size, packed.
    filled_by_task, filled_by_transfer
        At most one is set; neither for what is there at cycle 0 and for scratch.
    instances
        Of a stream, the offsets of further instances: with ``m`` offsets in all, inference ``k``
        uses that of number ``k mod m``, of which ``offset`` is the first.
    """

    index: ResidencyIdx
    slice: SliceIdx | None = None
    memory: MemoryIdx
    offset: Bytes
    bytes: Count
    start: Cycles
    end: Count
    filled_by_task: TaskIdx | None = None
    filled_by_transfer: TransferIdx | None = None
    instances: Instances = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A DMA move of a slice during ``[start, end)``; its last byte leaves the source by ``sent``.

    Parameters
    ----------
    source
        A residency of the slice or of its parent.
    destinations
        Residencies of the slice; several only for an engine that can multicast.
    channel
        Of the engine, from 0.
    route
        The links over which it sends, each once, in the order of the path; for several destinations
        the union of the paths, in the order of first use.
    """

    index: TransferIdx
    slice: SliceIdx
    source: ResidencyIdx
    destinations: tuple[ResidencyIdx, ...]
    engine: EngineIdx
    channel: Amount
    start: Cycles
    sent: Count
    end: Count
    route: tuple[LinkIdx, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """How a plan for one inference is repeated: inference ``k`` does all ``k * period`` later.

    Parameters
    ----------
    period
        Cycles from the begin of an inference to that of the next one.
    begins
        The cycle at which the first inference begins. What has ended by then is the prologue, which
        happens once; what lasts from before it for ever is permanent.
    instances
        For each DRAM tensor the addresses of further instances: with ``m`` addresses in all,
        inference ``k`` has the tensor at that of number ``k mod m``. None for constants.
    """

    period: Count
    begins: Cycles = 0
    instances: tuple[Instances, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Quantities of a plan; see :class:`~spmilp.problem.objective.Quantity`.

    ``period`` is ``None`` of a plan for one inference: the next one can begin when all has ended.
    """

    makespan: Total
    dram_traffic: Total
    energy: Total
    peak_spm: Total
    period: Count | None = None

    def of(self, quantity: Quantity) -> int:
        """Return one of the quantities, in its unit."""
        if quantity is Quantity.PERIOD and self.period is None:
            return self.makespan
        found: int = getattr(self, quantity.value)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Measures):
    """Claims of the solver about its plan; the checker computes them again.

    ``bound`` is a proven lower bound on the first quantity, in its unit; ``bound_source`` its name.
    """

    bound: WideNumber
    bound_source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A complete answer to a problem; its validity is defined in ``docs/format.md``.

    ``placements`` has one for each task, in order of task; ``tensors`` the address of each of the
    problem's DRAM tensors, in order. ``solver`` is the name of the solver, and ``options`` are its
    settings as ``(name, value)``, for people. With a ``stream`` it is repeated; its makespan is
    then that of one inference, its latency.
    """

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    tensors: tuple[Bytes, ...] = ()
    claim: Claim
    solver: str
    options: tuple[tuple[str, str], ...] = ()
    problem_sha256: str = ""
    stream: Stream | None = None
