"""Read ``problem.json``."""

from pathlib import Path

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.machine.convert import machine_of
from spmilp.machine.fields import LARGEST
from spmilp.machine.routes import routes_of
from spmilp.problem.documents import (
    collector_paused,
    read_document,
    refuse_repeated_fields,
)
from spmilp.problem.model import (
    FORMAT,
    VERSION,
    VERSION_WITHOUT_PINS,
    BufferModel,
    PinsModel,
    ProblemModel,
    SliceModel,
    TaskModel,
    TensorModel,
    TileModel,
)
from spmilp.problem.objective import Objective
from spmilp.problem.pins import NO_PINS, BufferPin, Pins, TaskPin
from spmilp.problem.problem import (
    Buffer,
    DramTensor,
    Place,
    Problem,
    Slice,
    Task,
    Tile,
    whole_slice,
)
from spmilp.units import Bytes


def read_problem(path: Path | str) -> Problem:
    """Read a problem, complete and consistent.

    Raises
    ------
    FileError
        If the file cannot be read, breaks the format, or describes no consistent problem.
    """
    return problem_from(path, read_bytes(path))


@collector_paused()
def problem_from(path: Path | str, data: bytes) -> Problem:
    """Return the problem that the bytes of a file describe; for errors see :func:`read_problem`."""
    model = read_document(path, data, ProblemModel, FORMAT, VERSION)
    refuse_repeated_fields(path, data)
    try:
        return _problem(model)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error


def _problem(model: ProblemModel) -> Problem:
    if model.pins is not None and model.format_version == VERSION_WITHOUT_PINS:
        raise ValueError(f"pins: in a file of version {model.format_version}, expected {VERSION}")
    machine = machine_of(model.machine)
    routes_of(machine)  # says so when the machine's routes are not well defined
    buffers = tuple(_buffer(buffer) for buffer in model.buffers)
    return Problem(
        name=model.name,
        machine=machine,
        tensors=tuple(_tensor(tensor) for tensor in model.tensors),
        buffers=buffers,
        slices=(*map(whole_slice, buffers), *map(_slice, model.slices)),
        tasks=tuple(map(_task, model.tasks)),
        objective=Objective(model.objective),
        sources=tuple((source.what, source.sha256) for source in model.sources),
        pins=NO_PINS if model.pins is None else _pins(model.pins),
    )


def _tensor(model: TensorModel) -> DramTensor:
    tensor = DramTensor(
        index=model.index,
        name=model.name,
        kind=model.kind,
        memory=model.memory,
        shape=model.shape,
        item=model.item,
    )
    _agrees(f"tensors.{model.index}.bytes", model.bytes, tensor.bytes)
    return tensor


def _buffer(model: BufferModel) -> Buffer:
    place = model.place
    buffer = Buffer(
        index=model.index,
        name=model.name,
        kind=model.kind,
        shape=model.shape,
        item=model.item,
        starts_in=model.starts_in,
        ends_in=model.ends_in,
        place=None if place is None else Place(place.tensor, place.start),
        tile=_tile(model.tile),
    )
    _agrees(f"buffers.{model.index}.bytes", model.bytes, buffer.bytes)
    return buffer


def _slice(model: SliceModel) -> Slice:
    return Slice(
        index=model.index,
        buffer=model.buffer,
        start=model.start,
        extent=model.extent,
        bytes=model.bytes,
    )


def _task(model: TaskModel) -> Task:
    return Task(
        index=model.index,
        name=model.name,
        cycles=model.cycles,
        reads=model.reads,
        writes=model.writes,
        scratch=model.scratch,
        in_place=model.in_place,
        after=model.after,
        energy=model.energy,
        tile=_tile(model.tile),
    )


def _pins(model: PinsModel) -> Pins:
    return Pins(
        forbidden=model.forbidden,
        tasks=tuple(
            TaskPin(
                task=pin.task,
                cores=pin.cores,
                not_before=pin.not_before,
                not_after=pin.not_after,
            )
            for pin in model.tasks
        ),
        buffers=tuple(
            BufferPin(
                buffer=pin.buffer,
                memories=pin.memories,
                address=pin.address,
                resident=pin.resident,
            )
            for pin in model.buffers
        ),
    )


def _tile(model: TileModel | None) -> Tile | None:
    if model is None:
        return None
    return Tile(of=model.of, box=model.box, axes=model.axes, reduction=model.reduction)


def _agrees(field: str, stated: Bytes | None, found: Bytes) -> None:
    """Check a size that follows from other fields; a file may leave it out."""
    if found > LARGEST:
        raise ValueError(f"{field}: the shape and item give {found} B > {LARGEST} B")
    if stated is not None and stated != found:
        raise ValueError(f"{field}: is {stated}, but the shape and item give {found}")
