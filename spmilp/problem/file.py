"""Read and write ``problem.json``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from spmilp.cached import cached
from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of, write_atomically
from spmilp.formats import collector_paused, decoded, encoded, plain, read_document, shown
from spmilp.machine.machine import YOUNGER, Machine, machine_to_json
from spmilp.machine.routes import routes_of
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.pins import NO_PINS, Pins
from spmilp.problem.problem import Buffer, DramTensor, Problem, Slice, Task, whole_slice
from spmilp.units import LARGEST

FORMAT = "spmilp-problem"
VERSION = "2.2"


class SourceFile(Struct, frozen=True):
    """A file that the problem was made from."""

    what: str
    sha256: str


class ProblemFile(Struct, frozen=True, kw_only=True):
    """``problem.json`` as in ``docs/format.md``; ``slices`` are those that are no whole buffers."""

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


@collector_paused()
def read_problem(path: Path | str) -> Problem:
    """Read a problem, complete and consistent.

    Raises
    ------
    FileError
        If the file cannot be read, breaks the format, or describes no consistent problem.
    """
    sizes = {DramTensor: "bytes", Buffer: "bytes"}
    file, content = read_document(path, read_bytes(path), ProblemFile, FORMAT, VERSION, also=sizes)
    try:
        _is_whole(content["machine"], machine_to_json(file.machine), "machine")
        _sizes_agree("tensors", content, file.tensors)
        _sizes_agree("buffers", content, file.buffers)
        routes_of(file.machine)  # says so when the machine's routes are not well defined
        return Problem(
            name=file.name,
            machine=file.machine,
            tensors=file.tensors,
            buffers=file.buffers,
            slices=(*map(whole_slice, file.buffers), *file.slices),
            tasks=file.tasks,
            objective=Objective(file.objective),
            sources=tuple((source.what, source.sha256) for source in file.sources),
            pins=NO_PINS if file.pins is None else file.pins,
        )
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error


def _sizes_agree(table: str, content: Any, found: Sequence[Buffer | DramTensor]) -> None:
    """Check sizes, which follow from other fields; a file may leave them out."""
    for index, (row, one) in enumerate(zip(content[table], found, strict=True)):
        size, stated = one.bytes, row.get("bytes")
        who = f"{table}.{index}.bytes"
        if size > LARGEST:
            raise ValueError(f"{who}: the shape and item give {size} B > {LARGEST} B")
        if stated is not None and (stated != size or type(stated) is not int):
            raise ValueError(f"{who}: is {shown(stated)}, but the shape and item give {size}")


def _is_whole(given: Any, expected: Any, where: str) -> None:
    """Check that a machine says everything but for what is younger than the format."""
    if isinstance(expected, dict):
        for name, inside in expected.items():
            if name not in given and name not in YOUNGER:
                raise ValueError(f"{where}.{name}: is missing")
            _is_whole(given.get(name), inside, f"{where}.{name}")
    elif isinstance(expected, list) and len(given) == len(expected):
        for number, (row, inside) in enumerate(zip(given, expected, strict=True)):
            _is_whole(row, inside, f"{where}.{number}")


def write_problem(problem: Problem, path: Path | str) -> str:
    """Write a problem to a file, as a whole or not at all, and return its SHA-256.

    Raises a ``ValueError`` if the format cannot hold it: a name that a machine file cannot have, a
    number too large. Raises a ``FileError`` if the file cannot be written.
    """
    content = problem_bytes(problem)
    write_atomically(path, content)
    return sha256_of(content)


@cached
def problem_sha256(problem: Problem) -> str:
    """Return the SHA-256 of the problem as :func:`write_problem` writes it; plans refer to it."""
    return sha256_of(problem_bytes(problem))


@collector_paused()
def problem_bytes(problem: Problem) -> bytes:
    """Return what :func:`write_problem` writes; equal problems give equal bytes."""
    pins = {
        "forbidden": problem.pins.forbidden,
        "tasks": list(map(plain, problem.pins.tasks)),
        "buffers": list(map(plain, problem.pins.buffers)),
    }
    has_period = Quantity.PERIOD in problem.objective.order
    has_state = any(tensor.state is not None for tensor in problem.tensors)
    document = {
        "format": FORMAT,
        # The oldest version that has all of it: other problems keep their bytes, and their hashes.
        "format_version": VERSION if has_state else "2.1" if has_period else "2.0",
        "name": problem.name,
        "sources": [{"what": what, "sha256": sha256} for what, sha256 in problem.sources],
        "objective": problem.objective.order,
        "machine": machine_to_json(problem.machine),
        "tensors": [plain(tensor) | {"bytes": tensor.bytes} for tensor in problem.tensors],
        "buffers": list(map(_buffer, problem.buffers)),
        # Whole buffers are known from the buffers.
        "slices": list(map(plain, problem.slices[len(problem.buffers) :])),
        "tasks": list(map(_with_plain_tile, problem.tasks)),
        "pins": {name: rows for name, rows in pins.items() if rows},
    }
    if not problem.pins:
        del document["pins"]
    try:
        content = encoded(document)
        decoded(content, ProblemFile)
    except ValueError as error:
        raise ValueError(f"problem {problem.name}: {error}") from error
    return content


def _buffer(buffer: Buffer) -> dict[str, Any]:
    """Return the fields of a buffer, with its item and its size behind the shape."""
    fields = {"index": 0, "name": "", "kind": "", "shape": (), "item": 1, "bytes": buffer.bytes}
    return fields | _with_plain_tile(buffer)


def _with_plain_tile(owner: Buffer | Task) -> dict[str, Any]:
    fields = plain(owner)
    if owner.tile is not None:
        fields["tile"] = plain(owner.tile)
    return fields
