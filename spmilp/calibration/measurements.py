"""Measured tiles and their CSV file; the tiles of a network that are worth measuring."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import near_matches
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.family import Work
from spmilp.lowering.cost import can_run, task_cycles
from spmilp.lowering.learned import LOOPS, Family
from spmilp.lowering.lower import tile_group
from spmilp.machine.machine import CoreKind, Machine
from spmilp.tile_selection.first_choice import CandidateSpace
from spmilp.units import LARGEST, Cycles

NAMES = ("kind", "operator", "dtype")
COLUMNS = (*NAMES, *LOOPS, "vector", "cycles")
WORKLOAD = "workload"
"""A column that may be there: only tiles of the same workload are compared by their order."""

MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A tile and its cycles on a kind of core.

    Parameters
    ----------
    operator
        The ONNX type of the operator that the tile's group is built around.
    rule
        Cycles by the machine's arrays, lanes and launch.
    workload
        What the tile is a part of; empty where the file does not say.
    """

    kind: str
    operator: str
    work: Work
    cycles: Cycles
    rule: Cycles
    workload: str = ""

    @property
    def family(self) -> Family:
        """What it is an example of."""
        return self.kind, self.operator, self.work.dtype


def read_measurements(path: Path | str, machine: Machine) -> tuple[tuple[Measurement, ...], str]:
    """Return the rows of a file, and the file's SHA-256.

    Raises
    ------
    FileError
        If the file cannot be read or is not of the format; the message names the line.
    """
    if Path(path).is_file() and Path(path).stat().st_size > MOST_BYTES:
        size = Path(path).stat().st_size
        raise FileError(f"{path}: has {size} B, more than the {MOST_BYTES} B that are read")
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        header = tuple(reader.fieldnames or ())
        _require_columns(header, path)
        found = []
        for cells in reader:
            try:
                found.append(_measurement(cells, machine))
            except ValueError as error:
                raise FileError(f"{path}, line {reader.line_num}: {error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(f"{path}: is no CSV in UTF-8: {error}") from error
    if not found:
        raise FileError(f"{path}: has no row with a measured tile")
    return tuple(found), sha256_of(data)


def _require_columns(header: tuple[str, ...], path: Path | str) -> None:
    needed = (*NAMES, "cycles")
    missing = [name for name in needed if name not in header]
    if missing:
        raise FileError(
            f"{path}: has no column {missing[0]}{near_matches(missing[0], header)}; expected "
            f"{','.join(COLUMNS)} with {', '.join(needed)} at least"
        )
    known = (*COLUMNS, WORKLOAD)
    for name in header:
        if name not in known:
            raise FileError(f"{path}: unknown column {name!r}{near_matches(name, known)}")
        if header.count(name) > 1:
            raise FileError(f"{path}: the column {name} is there {header.count(name)} times")


def _measurement(cells: dict[str, str | None], machine: Machine) -> Measurement:
    if None in cells or None in cells.values():
        raise ValueError("has another number of cells than the first line")
    given = {name: (cell or "").strip() for name, cell in cells.items()}
    name, operator, dtype = (given[column] for column in NAMES)
    kind = _kind_named(name, machine)
    loops = tuple((loop, _number(given, loop, 1)) for loop in LOOPS if given.get(loop))
    vector = _number(given, "vector", 0) if given.get("vector") else 0
    work = Work(loops=loops, vector=vector, dtype=dtype)
    rule = task_cycles(work, kind)
    if rule is None:
        raise ValueError(f"cores {name} of {machine.name} cannot do work of type {dtype!r}")
    return Measurement(
        kind=name,
        operator=operator,
        work=work,
        cycles=_number(given, "cycles", 1),
        rule=rule,
        workload=given.get(WORKLOAD, ""),
    )


def _kind_named(name: str, machine: Machine) -> CoreKind:
    found = next((kind for kind in machine.kinds if kind.name == name), None)
    if found is None:
        names = ", ".join(kind.name for kind in machine.kinds)
        raise ValueError(f"kind: {machine.name} has no cores {name!r}, only {names}")
    return found


def _number(given: dict[str, str], column: str, least: int) -> int:
    text = given[column]
    if not (text.isascii() and text.isdecimal() and least <= int(text[:20]) <= LARGEST):
        raise ValueError(f"{column}: {text[:40]!r}, expected a whole number >= {least}")
    return int(text)


def as_csv(rows: Iterable[Measurement]) -> str:
    """Return measurements as the text of a file."""
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow((*COLUMNS, WORKLOAD))
    for row in rows:
        trips = dict(row.work.loops)
        numbers = [trips.get(loop, "") for loop in LOOPS]
        names = row.kind, row.operator, row.work.dtype
        writer.writerow((*names, *numbers, row.work.vector, row.cycles, row.workload))
    return to.getvalue()


def tiles_worth_measuring(network: Network, machine: Machine) -> Iterator[Measurement]:
    """Yield the different tiles of all candidate tilings of a network, with cycles by rule.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group, or a group's smallest tile fits no scratchpad.
    """
    space = CandidateSpace(network, machine)
    seen: set[tuple[str, str, Work]] = set()
    for group in network.groups:
        operator = group.operators[group.anchor].kind
        tilings = [profile.candidate.tiling for profile in space.profiles(group)]
        works = (task.work for one in tilings for task in tile_group(network, group, one).tasks)
        for work in dict.fromkeys(works):
            for kind in machine.kinds:
                rule = task_cycles(work, kind) if can_run(kind, group) else None
                if rule is None or (kind.name, operator, work) in seen:
                    continue
                seen.add((kind.name, operator, work))
                yield Measurement(
                    kind=kind.name,
                    operator=operator,
                    work=work,
                    cycles=rule,
                    rule=rule,
                    workload=group.name,
                )
