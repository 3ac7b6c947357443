"""Read ``problem.json``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.formats import (
    collector_paused,
    read_document,
    refuse_odd_fields,
    shown,
    version_numbers,
)
from spmilp.machine.machine import YOUNGER, machine_to_json
from spmilp.machine.routes import routes_of
from spmilp.problem.objective import Objective
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Buffer, DramTensor, Problem, whole_slice
from spmilp.problem.write import (
    FORMAT,
    VERSION,
    VERSION_WITHOUT_PINS,
    ProblemFile,
)
from spmilp.units import LARGEST


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
    file = read_document(path, data, ProblemFile, FORMAT, VERSION)
    try:
        newer = version_numbers(path, file.format_version) > version_numbers(path, VERSION)
        sizes = {DramTensor: "bytes", Buffer: "bytes"}
        content = refuse_odd_fields(path, data, ProblemFile, tolerant=newer, also=sizes)
        _is_whole(content["machine"], machine_to_json(file.machine), "machine")
        _sizes_agree("tensors", content, file.tensors)
        _sizes_agree("buffers", content, file.buffers)
        return _problem(file)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error


def _problem(file: ProblemFile) -> Problem:
    if file.pins is not None and file.format_version == VERSION_WITHOUT_PINS:
        raise ValueError(f"pins: in a file of version {file.format_version}, expected {VERSION}")
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
