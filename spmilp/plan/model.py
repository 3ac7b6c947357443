"""The format of ``plan.json``: its fields and their types; ``docs/format.md`` explains them.

Fields marked ``DERIVED`` follow from the other fields and the problem; they are for readers of the
file alone.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from spmilp.machine.fields import Amount, Count, FileModel
from spmilp.problem.model import Total
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import BufferKind

FORMAT = "spmilp-plan"
VERSION = "1.0"

DERIVED = Field(description="Follows from the other fields and the problem; may be left out.")

Number: TypeAlias = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Direction: TypeAlias = Literal["load", "store", "move"]


class MetaModel(FileModel):
    """Origin of the plan; only ``problem_sha256`` is read."""

    tool: str | None = None
    tool_version: str | None = None
    problem: Annotated[str | None, DERIVED] = None
    machine: Annotated[str | None, DERIVED] = None
    model_sha256: Annotated[str | None, DERIVED] = None
    machine_sha256: Annotated[str | None, DERIVED] = None
    problem_sha256: str = ""


class SolveModel(FileModel):
    """Claims of the solver about its plan; ``gap`` is ``(value - bound) / value``, and not read."""

    solver: str
    options: tuple[tuple[str, str], ...] = ()
    objective: Annotated[Quantity | None, DERIVED] = None
    value: Annotated[Number | None, DERIVED] = None
    bound: Number
    bound_source: str
    gap: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    makespan: Total
    dram_traffic: Total
    energy: Total
    peak_spm: Total


class TensorModel(FileModel):
    """The address of a DRAM tensor, in bytes."""

    index: Amount
    name: Annotated[str | None, DERIVED] = None
    memory: Annotated[Amount | None, DERIVED] = None
    memory_name: Annotated[str | None, DERIVED] = None
    address: Amount
    bytes: Annotated[Amount | None, DERIVED] = None


class TaskModel(FileModel):
    """A task on a core, ``cycles`` long; the residencies of its operands, results and scratch."""

    index: Amount
    name: Annotated[str | None, DERIVED] = None
    core: Amount
    core_name: Annotated[str | None, DERIVED] = None
    start: Amount
    cycles: Count
    reads: tuple[Amount, ...] = ()
    writes: tuple[Amount, ...] = ()
    scratch: Amount | None = None


class ResidencyModel(FileModel):
    """A residency in a memory during ``[start, end)``; ``slice`` is missing for scratch."""

    index: Amount
    slice: Amount | None = None
    name: Annotated[str | None, DERIVED] = None
    kind: Annotated[BufferKind | Literal["scratch"] | None, DERIVED] = None
    memory: Amount
    memory_name: Annotated[str | None, DERIVED] = None
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
    name: Annotated[str | None, DERIVED] = None
    dir: Annotated[Direction | None, DERIVED] = None
    engine: Amount
    engine_name: Annotated[str | None, DERIVED] = None
    channel: Amount
    start: Amount
    cycles: Count
    bytes: Annotated[Count | None, DERIVED] = None
    source: Amount
    destinations: tuple[Amount, ...]
    src: Annotated[SourceEndModel | None, DERIVED] = None
    dst: Annotated[tuple[DestinationEndModel, ...] | None, DERIVED] = None
    route: tuple[Amount, ...]


class CoreModel(FileModel):
    """Use of a core and its memory; all derived. Bytes, and cycles for ``busy``."""

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
    cores: Annotated[tuple[CoreModel, ...] | None, DERIVED] = None
