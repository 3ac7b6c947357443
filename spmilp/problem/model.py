"""The format of ``problem.json``: its fields and their types; ``docs/format.md`` explains them."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from spmilp.machine.convert import MachineModel
from spmilp.machine.fields import LARGEST, Amount, Count, FileModel, Flag
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import BufferKind

FORMAT = "spmilp-problem"
VERSION = "1.1"

VERSION_WITHOUT_PINS = "1.0"
"""Problems without pins are written as before there were any."""

MOST_AXES = 32
"""No tensor of ONNX operators has so many; keeps what a hostile file makes us print short."""

LARGEST_TOTAL = 2**63 - 1
"""Of energies in femtojoules and of sums, so that every reader can take 64 bits."""

Axes: TypeAlias = Annotated[tuple[Count, ...], Field(max_length=MOST_AXES)]
Corner: TypeAlias = Annotated[tuple[Amount, ...], Field(max_length=MOST_AXES)]
Coordinate: TypeAlias = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Interval: TypeAlias = tuple[Coordinate, Coordinate]
Total: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=LARGEST_TOTAL)]


class TileModel(FileModel):
    """Where a task or buffer comes from; for people and for the replay on real numbers."""

    of: str
    box: Annotated[tuple[Interval, ...], Field(max_length=MOST_AXES)]
    axes: Corner = ()
    reduction: Interval | None = None


class TensorModel(FileModel):
    """A whole tensor in DRAM; ``item`` and ``bytes`` in bytes."""

    index: Amount
    name: str
    kind: BufferKind
    memory: Amount
    shape: Axes
    item: Count
    bytes: Count | None = None


class PlaceModel(FileModel):
    """The box of a DRAM tensor that is a buffer's home: its first element along each axis."""

    tensor: Amount
    start: Corner


class BufferModel(FileModel):
    """A contiguous run of bytes that is written once as a whole; ``item`` in bytes."""

    index: Amount
    name: str
    kind: BufferKind
    shape: Axes
    item: Count = 1
    bytes: Count | None = None
    starts_in: Amount | None = None
    ends_in: Amount | None = None
    place: PlaceModel | None = None
    tile: TileModel | None = None


class SliceModel(FileModel):
    """A box of a buffer, in elements; the whole buffers are not listed."""

    index: Amount
    buffer: Amount
    start: Corner
    extent: Axes
    bytes: Count


class TaskModel(FileModel):
    """One tile's execution; ``cycles`` and ``energy`` (femtojoules) for each kind of core."""

    index: Amount
    name: str
    cycles: tuple[Count | None, ...]
    reads: tuple[Amount, ...] = ()
    writes: tuple[Amount, ...] = ()
    scratch: Amount = 0
    in_place: tuple[tuple[Amount, Amount], ...] = ()
    after: tuple[Amount, ...] = ()
    energy: tuple[Total | None, ...] = ()
    tile: TileModel | None = None


class TaskPinModel(FileModel):
    """Cores on which a task runs, and cycles between which."""

    task: Amount
    cores: tuple[Amount, ...] = ()
    not_before: Amount = 0
    not_after: Count | None = None


class BufferPinModel(FileModel):
    """Memories in which a buffer lies; its address there, in bytes; whether it stays."""

    buffer: Amount
    memories: Annotated[tuple[Amount, ...], Field(min_length=1)]
    address: Amount | None = None
    resident: Flag = False


class PinsModel(FileModel):
    """What a plan has to keep to besides the rules."""

    forbidden: tuple[Amount, ...] = ()
    tasks: tuple[TaskPinModel, ...] = ()
    buffers: tuple[BufferPinModel, ...] = ()


class SourceModel(FileModel):
    """A file that the problem was made from."""

    what: str
    sha256: str


class ProblemModel(FileModel):
    """A mapping problem: buffers, slices and tasks on a machine. Bytes, cycles, femtojoules."""

    format: Literal["spmilp-problem"]
    format_version: str
    name: str
    sources: tuple[SourceModel, ...] = ()
    objective: tuple[Quantity, ...]
    machine: MachineModel
    tensors: tuple[TensorModel, ...]
    buffers: tuple[BufferModel, ...]
    slices: tuple[SliceModel, ...]
    tasks: tuple[TaskModel, ...]
    pins: PinsModel | None = None
