"""Write ``problem.json``."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from spmilp.cached import cached
from spmilp.files import sha256_of, write_atomically
from spmilp.formats import collector_paused, decoded, encoded, plain
from spmilp.machine.machine import Machine, machine_to_json
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import BufferPin, Pins, TaskPin
from spmilp.problem.problem import Buffer, DramTensor, Problem, Slice, Task

FORMAT = "spmilp-problem"
VERSION = "1.1"

VERSION_WITHOUT_PINS = "1.0"
"""Problems without pins are written as before there were any."""


class SourceFile(Struct, frozen=True):
    """A file that the problem was made from."""

    what: str
    sha256: str


class ProblemFile(Struct, frozen=True, kw_only=True):
    """The content of ``problem.json``; ``docs/format.md`` explains it.

    ``slices`` are those that are no whole buffers.
    """

    format: str
    format_version: str
    name: str
    sources: tuple[SourceFile, ...] = ()
    objective: tuple[Quantity, ...]
    machine: Machine
    tensors: tuple[DramTensor, ...]
    buffers: tuple[Buffer, ...]
    slices: tuple[Slice, ...]
    tasks: tuple[Task, ...]
    pins: Pins | None = None


def write_problem(problem: Problem, path: Path | str) -> str:
    """Write a problem to a file, as a whole or not at all, and return its SHA-256.

    Raises
    ------
    ValueError
        If the format cannot hold it: a name that a machine file cannot have, a number too large.
    FileError
        If the file cannot be written.
    """
    content = problem_bytes(problem)
    write_atomically(path, content)
    return sha256_of(content)


@cached
def problem_sha256(problem: Problem) -> str:
    """Return the SHA-256 of the problem as :func:`write_problem` writes it; plans refer to it.

    Raises
    ------
    ValueError
        As :func:`write_problem`.
    """
    return sha256_of(problem_bytes(problem))


def problem_text(problem: Problem) -> str:
    """Return :func:`problem_bytes` as text."""
    return problem_bytes(problem).decode()


@collector_paused()
def problem_bytes(problem: Problem) -> bytes:
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
        "objective": problem.objective.order,
        "machine": machine_to_json(problem.machine),
        "tensors": [plain(tensor, ()) | {"bytes": tensor.bytes} for tensor in problem.tensors],
        "buffers": list(map(_buffer, problem.buffers)),
        # Whole buffers are known from the buffers.
        "slices": [plain(slice_, ()) for slice_ in problem.slices[len(problem.buffers) :]],
        "tasks": list(map(_task, problem.tasks)),
    }
    if problem.pins:
        document["pins"] = _pins(problem.pins)
    try:
        content = encoded(document)
        decoded(content, ProblemFile)
    except ValueError as error:
        raise ValueError(f"problem {problem.name}: {error}") from error
    return content


def _buffer(buffer: Buffer) -> dict[str, Any]:
    fields = {
        "index": buffer.index,
        "name": buffer.name,
        "kind": buffer.kind,
        "shape": buffer.shape,
        "item": buffer.item,
        "bytes": buffer.bytes,
    }
    if buffer.starts_in is not None:
        fields["starts_in"] = buffer.starts_in
    if buffer.ends_in is not None:
        fields["ends_in"] = buffer.ends_in
    if buffer.place is not None:
        fields["place"] = plain(buffer.place, ())
    if buffer.tile is not None:
        fields["tile"] = _tile(buffer.tile)
    return fields


def _task(task: Task) -> dict[str, Any]:
    fields = plain(task)
    fields["cycles"] = task.cycles
    if task.scratch == 0:
        del fields["scratch"]
    if task.tile is not None:
        fields["tile"] = _tile(task.tile)
    return fields


def _tile(tile: Any) -> dict[str, Any]:
    return {"of": tile.of, "box": tile.box, **plain(tile)}


def _pins(pins: Pins) -> dict[str, Any]:
    found = plain(pins)
    if pins.tasks:
        found["tasks"] = [_without_zeros(pin) for pin in pins.tasks]
    if pins.buffers:
        found["buffers"] = [_without_zeros(pin) for pin in pins.buffers]
    return found


def _without_zeros(pin: TaskPin | BufferPin) -> dict[str, Any]:
    """Return the fields of a pin that say something; an index or an address may be 0."""
    kept = ("task", "buffer", "address")
    return {name: value for name, value in plain(pin).items() if value or name in kept}
