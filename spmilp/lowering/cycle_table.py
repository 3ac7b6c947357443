"""Measured cycles of tiles, read from a CSV file; they override the analytic cost model."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from spmilp.errors import FileError
from spmilp.units import Box, Cycles

COLUMNS = ("group", "tile", "core_kind", "cycles")
Key = tuple[str, str, str]
ANY_TILE = ""


@dataclass(frozen=True, slots=True)
class CycleTable:
    """Cycles by name, tile and core kind.

    Parameters
    ----------
    rows
        ``(name, tile, core kind) -> cycles``. The name is a group's, or the operator type of the
        groups' anchors. The tile is a box ``0:1,0:16,0:14,0:14``, or its extents ``1x16x14x14``, or
        empty for every tile; ``/8:16`` (after a box) or ``/8`` (after extents) says which part of
        the reduction, or how much of it, the tile covers.
    """

    rows: Mapping[Key, Cycles] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def find(
        self, names: Sequence[str], kind: str, box: Box, part: tuple[int, int] | None
    ) -> Cycles | None:
        """Return the cycles of a tile, ``None`` where nothing was measured.

        The earliest of ``names`` with a row wins; for one name the box, then the extents, then the
        row for every tile.
        """
        for name in names:
            for tile in (_box_text(box, part), _extent_text(box, part), ANY_TILE):
                found = self.rows.get((name, tile, kind))
                if found is not None:
                    return found
        return None


def read_cycle_table(path: Path) -> CycleTable:
    """Read measured cycles from a CSV file with the columns ``group, tile, core_kind, cycles``.

    Raises
    ------
    FileError
        If the file cannot be read, a column is missing, a row is incomplete or given twice, or
        cycles are no positive integer; the message names the line.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise FileError(
                    f"{path}: column {missing[0]} is missing; expected {', '.join(COLUMNS)}"
                )
            rows: dict[Key, Cycles] = {}
            for row in reader:
                key, cycles = _read_row(f"{path}, line {reader.line_num}", row)
                if key in rows:
                    raise FileError(
                        f"{path}, line {reader.line_num}: {key} is given twice, with "
                        f"{rows[key]} and {cycles} cycles"
                    )
                rows[key] = cycles
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: cannot be read as a table of cycles: {error}") from error
    return CycleTable(MappingProxyType(rows))


def _read_row(where: str, row: Mapping[str, str | None]) -> tuple[Key, Cycles]:
    group, tile, kind, cycles = ((row[name] or "").strip() for name in COLUMNS)
    for name, value in (("group", group), ("core_kind", kind)):
        if not value:
            raise FileError(f"{where}: {name} is empty")
    if not cycles.isdecimal() or int(cycles) == 0:
        raise FileError(f"{where}: cycles is {cycles!r}, expected a positive integer")
    return (group, tile.replace(" ", ""), kind), int(cycles)


def _box_text(box: Box, part: tuple[int, int] | None) -> str:
    text = ",".join(f"{start}:{stop}" for start, stop in box)
    return text if part is None else f"{text}/{part[0]}:{part[1]}"


def _extent_text(box: Box, part: tuple[int, int] | None) -> str:
    text = "x".join(str(stop - start) for start, stop in box)
    return text if part is None else f"{text}/{part[1] - part[0]}"
