"""Write ``problem.json``."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spmilp.files import sha256_of, write_atomically
from spmilp.machine.convert import machine_to_json
from spmilp.machine.fields import what_is_wrong
from spmilp.problem.documents import Rows, as_text, collector_paused, row
from spmilp.problem.model import FORMAT, VERSION, VERSION_WITHOUT_PINS, ProblemModel
from spmilp.problem.pins import BufferPin, Pins, TaskPin
from spmilp.problem.problem import Buffer, DramTensor, Problem, Slice, Task, Tile


def write_problem(problem: Problem, path: Path | str) -> str:
    """Write a problem to a file, as a whole or not at all, and return its SHA-256.

    Raises
    ------
    ValueError
        If the format cannot hold it: a name that a machine file cannot have, a number too large.
    FileError
        If the file cannot be written.
    """
    text = problem_text(problem).encode()
    write_atomically(path, text)
    return sha256_of(text)


def problem_sha256(problem: Problem) -> str:
    """Return the SHA-256 of the problem as :func:`write_problem` writes it; plans refer to it.

    Raises
    ------
    ValueError
        As :func:`write_problem`.
    """
    return sha256_of(problem_text(problem).encode())


@collector_paused()
def problem_text(problem: Problem) -> str:
    """Return the content of ``problem.json``; equal problems give equal bytes.

    Raises
    ------
    ValueError
        As :func:`write_problem`.
    """
    document = {
        "format": FORMAT,
        "format_version": VERSION if problem.pins else VERSION_WITHOUT_PINS,
        "name": problem.name,
        "sources": [{"what": what, "sha256": sha256} for what, sha256 in problem.sources],
        "objective": [quantity.value for quantity in problem.objective.order],
        "machine": machine_to_json(problem.machine),
        "tensors": Rows(_tensor, problem.tensors),
        "buffers": Rows(_buffer, problem.buffers),
        # Whole buffers are known from the buffers.
        "slices": Rows(_slice, problem.slices[len(problem.buffers) :]),
        "tasks": Rows(_task, problem.tasks),
        **({"pins": _pins(problem.pins)} if problem.pins else {}),
    }
    try:
        return as_text(document, ProblemModel)
    except ValidationError as error:
        raise ValueError(f"problem {problem.name}: {what_is_wrong(error, ProblemModel)}") from error


def _tensor(tensor: DramTensor) -> dict[str, Any]:
    return {
        "index": tensor.index,
        "name": tensor.name,
        "kind": tensor.kind.value,
        "memory": tensor.memory,
        "shape": tensor.shape,
        "item": tensor.item,
        "bytes": tensor.bytes,
    }


def _buffer(buffer: Buffer) -> dict[str, Any]:
    place = buffer.place
    return {
        "index": buffer.index,
        "name": buffer.name,
        "kind": buffer.kind.value,
        "shape": buffer.shape,
        "item": buffer.item,
        "bytes": buffer.bytes,
        **row(
            starts_in=buffer.starts_in,
            ends_in=buffer.ends_in,
            place=place and {"tensor": place.tensor, "start": place.start},
            tile=_tile(buffer.tile),
        ),
    }


def _slice(slice_: Slice) -> dict[str, Any]:
    return {
        "index": slice_.index,
        "buffer": slice_.buffer,
        "start": slice_.start,
        "extent": slice_.extent,
        "bytes": slice_.bytes,
    }


def _task(task: Task) -> dict[str, Any]:
    return {
        "index": task.index,
        "name": task.name,
        "cycles": task.cycles,
        **row(
            reads=task.reads,
            writes=task.writes,
            scratch=task.scratch or None,
            in_place=task.in_place,
            after=task.after,
            energy=task.energy,
            tile=_tile(task.tile),
        ),
    }


def _tile(tile: Tile | None) -> dict[str, Any] | None:
    if tile is None:
        return None
    return {"of": tile.of, "box": tile.box, **row(axes=tile.axes, reduction=tile.reduction)}


def _pins(pins: Pins) -> dict[str, Any]:
    return row(
        forbidden=pins.forbidden,
        tasks=[_task_pin(pin) for pin in pins.tasks] or None,
        buffers=[_buffer_pin(pin) for pin in pins.buffers] or None,
    )


def _task_pin(pin: TaskPin) -> dict[str, Any]:
    return {
        "task": pin.task,
        **row(cores=pin.cores, not_before=pin.not_before or None, not_after=pin.not_after),
    }


def _buffer_pin(pin: BufferPin) -> dict[str, Any]:
    return {
        "buffer": pin.buffer,
        "memories": pin.memories,
        **row(address=pin.address, resident=pin.resident or None),
    }
