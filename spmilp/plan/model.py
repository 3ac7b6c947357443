"""The format of ``plan.json``: its fields and their types; ``docs/format.md`` explains them.

A field whose default is ``None`` and whose comment says *derived* repeats, for whoever reads the
file alone, what follows from the other fields and the problem.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from spmilp.machine.fields import Amount, Count, FileModel
from spmilp.problem.model import Total
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import BufferKind

FORMAT = "spmilp-plan"
VERSION = "1.0"

Number: TypeAlias = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Direction: TypeAlias = Literal["load", "store", "move"]


class MetaModel(FileModel):
    """What the plan was made from and with; only ``problem_sha256`` is read."""

    tool: str | None = None
    tool_version: str | None = None
    problem: str | None = None  # derived
    machine: str | None = None  # derived
    model_sha256: str | None = None  # derived
    machine_sha256: str | None = None  # derived
    problem_sha256: str = ""


class SolveModel(FileModel):
    """What the solver states of its plan; ``gap`` is ``(value - bound) / value``, and not read."""

    solver: str
    options: tuple[tuple[str, str], ...] = ()
    objective: Quantity | None = None  # derived
    value: Number | None = None  # derived
    bound: Number
    bound_source: str
    gap: float | None = None
    makespan: Total
    dram_traffic: Total
    energy: Total
    peak_spm: Total


class TensorModel(FileModel):
    """The address of a DRAM tensor, in bytes."""

    index: Amount
    name: str | None = None  # derived
    memory: Amount | None = None  # derived
    memory_name: str | None = None  # derived
    address: Amount
    bytes: Amount | None = None  # derived


class TaskModel(FileModel):
    """A task on a core, ``cycles`` long; the residencies of its operands, results and scratch."""

    index: Amount
    name: str | None = None  # derived
    core: Amount
    core_name: str | None = None  # derived
    start: Amount
    cycles: Count
    reads: tuple[Amount, ...] = ()
    writes: tuple[Amount, ...] = ()
    scratch: Amount | None = None


class ResidencyModel(FileModel):
    """A stay in a memory during ``[start, end)``; ``slice`` is missing for scratch."""

    index: Amount
    slice: Amount | None = None
    name: str | None = None  # derived
    kind: BufferKind | Literal["scratch"] | None = None  # derived
    memory: Amount
    memory_name: str | None = None  # derived
    offset: Amount
    bytes: Count
    start: Amount
    end: Count
    filled_by_task: Amount | None = None
    filled_by_transfer: Amount | None = None


class SourceEndModel(FileModel):
    """The address of the first byte read."""

    memory: Amount
    address: Total


class DimensionModel(FileModel):
    """``count`` steps of some bytes on both sides."""

    count: Count
    src_stride: Total
    dst_stride: Total


class DestinationEndModel(FileModel):
    """The address of the first byte written, and the copy: outermost loop first, bytes last."""

    memory: Amount
    address: Total
    dims: tuple[DimensionModel, ...]


class TransferModel(FileModel):
    """A DMA move, ``cycles`` long; ``source`` and ``destinations`` are residencies."""

    index: Amount
    slice: Amount
    name: str | None = None  # derived
    dir: Direction | None = None  # derived
    engine: Amount
    engine_name: str | None = None  # derived
    channel: Amount
    start: Amount
    cycles: Count
    bytes: Count | None = None  # derived
    source: Amount
    destinations: tuple[Amount, ...]
    src: SourceEndModel | None = None  # derived
    dst: tuple[DestinationEndModel, ...] | None = None  # derived
    route: tuple[Amount, ...]


class CoreModel(FileModel):
    """How a core and its memory are used; all derived. Bytes, and cycles for ``busy``."""

    index: Amount
    name: str
    memory: Amount
    memory_name: str
    tasks: Amount
    busy: Total
    peak: Total
    live_peak: Total
    reserved: Amount
    capacity: Amount | None = None


class PlanModel(FileModel):
    """A complete answer to a problem. Bytes, cycles, femtojoules."""

    format: Literal["spmilp-plan"]
    format_version: str
    meta: MetaModel
    solve: SolveModel
    tensors: tuple[TensorModel, ...]
    tasks: tuple[TaskModel, ...]
    residencies: tuple[ResidencyModel, ...]
    transfers: tuple[TransferModel, ...]
    cores: tuple[CoreModel, ...] | None = None  # derived
