"""The best makespans that are known, kept in a file, and gaps split by them."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from io import StringIO
from pathlib import Path

import pandas as pd

from spmilp.bench.records import Record
from spmilp.bench.sections import COUNT, SHARE, TEXT, Columns, Section, section
from spmilp.comparison.table import csv_of
from spmilp.errors import FileError
from spmilp.export.names import no_formula
from spmilp.files import read_bytes, write_atomically
from spmilp.problem.objective import Quantity
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class BestKnown:
    """The best that is known of a row.

    Parameters
    ----------
    makespan
        Of a checked plan, of any tiling.
    bound
        That no plan of any tiling is below: of a network its roofline, of a problem, which is one
        tiling, the best bound that was proven.
    seconds
        Of the run that found the plan.
    revision
        Of the code that found it.
    """

    row: str
    makespan: Cycles
    bound: Cycles
    seconds: float
    revision: str

    def __post_init__(self) -> None:
        if self.bound < 0:
            raise ValueError(f"bound {self.bound}, expected 0 or more")
        if self.makespan < self.bound:
            raise ValueError(f"makespan {self.makespan} is below the bound {self.bound}")


COLUMNS = [field.name for field in fields(BestKnown)]

GAPS = ["instance", "solver", "seed", "makespan", "best_known", "bound", "gap"]
GAPS += ["found_with_more_time", "still_open", "best_seconds", "best_revision", "reason"]

BY_SOLVER: Columns = {
    "solver": ("solver", TEXT),
    "runs": ("runs", COUNT),
    "gap": ("mean gap, any tiling", SHARE),
    "found_with_more_time": ("found with more time", SHARE),
    "still_open": ("still open", SHARE),
}
NOTE = (
    "Gaps to bounds that hold for any tiling, in parts that add up: down to the best makespan that "
    "is known of the row, of whatever tiling, and from there to the bound. Arithmetic means, as "
    "shares of the run's makespan; not the gaps to the bounds of the run's own tiles."
)

DIGITS = 6
"""Decimals of shares and seconds."""


def read_best(path: Path) -> dict[str, BestKnown]:
    """Return what a file says of each row.

    Raises
    ------
    FileError
        If it cannot be read, or a line of it is none of such a file.
    """
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: is no UTF-8 text ({error.reason} at byte {error.start})"
        ) from error
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    found: dict[str, BestKnown] = {}
    try:
        head = next(lines, [])
        if head != COLUMNS:
            raise ValueError(f"columns {','.join(head)}, expected {','.join(COLUMNS)}")
        for cells in lines:
            best = _best(cells)
            if best.row in found:
                raise ValueError(f"row {best.row} is there twice; keep one of the lines")
            found[best.row] = best
    except (ValueError, csv.Error) as error:
        raise FileError(f"{path}: line {lines.line_num}: {error}") from error
    return found


def _best(cells: Sequence[str]) -> BestKnown:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} cells, expected {len(COLUMNS)}")
    row, makespan, bound, seconds, revision = cells
    return BestKnown(
        row=row,
        makespan=int(makespan),
        bound=int(bound),
        seconds=float(seconds),
        revision=revision,
    )


def keep_best(path: Path, records: Iterable[Record]) -> list[str]:
    """Put better makespans and bounds of runs into a file, which is made where it is missing.

    Returns
    -------
    list
        A sentence for each run that contradicts the file, which then stays as it is in that row.

    Raises
    ------
    FileError
        If the file cannot be read or written.
    """
    # Read again each time: other benchmarks may keep theirs in the same file.
    before = read_best(path) if path.exists() else None
    found, wrong = improved(before or {}, records)
    if found != before:
        rows = [astuple(found[name]) for name in sorted(found)]
        write_atomically(path, csv_of(pd.DataFrame(rows, columns=COLUMNS)))
    return [f"{path}: {each}" for each in wrong]


def improved(
    known: Mapping[str, BestKnown], records: Iterable[Record]
) -> tuple[dict[str, BestKnown], list[str]]:
    """Return what is known of each row with these runs, and what of them contradicts it."""
    found, wrong = dict(known), []
    for record in records:
        makespan, bound = record.objective, bound_of_any_tiles(record)
        if makespan is None or bound is None:
            continue
        name, old = _cell(record.instance), found.get(_cell(record.instance))
        try:
            if old is None or makespan < old.makespan:
                found[name] = BestKnown(
                    row=name,
                    makespan=makespan,
                    bound=bound if old is None else max(bound, old.bound),
                    seconds=round(record.seconds or 0.0, DIGITS),
                    revision=record.setting.version,
                )
            elif bound > old.bound:
                found[name] = replace(old, bound=bound)
        except ValueError as error:
            wrong.append(
                f"row {record.instance}: {error}; it is another problem than the one of revision "
                f"{'' if old is None else old.revision}: remove the line, or name the row otherwise"
            )
    return found, wrong


def bound_of_any_tiles(record: Record) -> Cycles | None:
    """Return cycles that no plan of the run's row is below; ``None`` for other quantities."""
    statistics = record.statistics
    if statistics is None or statistics.quantity != Quantity.MAKESPAN.value:
        return None
    if statistics.roofline is not None:
        return statistics.roofline
    # Without a network, the row is one problem, and what is proven of it holds.
    return None if record.described.get("model") else record.bound


def _cell(name: str) -> str:
    """Return a name as it stands in the file."""
    return no_formula(name.replace("\r", "\\r"))


def gaps_frame(records: Iterable[Record], known: Mapping[str, BestKnown]) -> pd.DataFrame:
    """Return for each run its way to the best makespan that is known, and from there to a bound.

    ``docs/benchmarks.md`` explains the columns.
    """
    rows = []
    for record in records:
        best, bound = known.get(_cell(record.instance)), bound_of_any_tiles(record)
        if best is None or bound is None or not record.objective:
            continue
        makespan, least = record.objective, max(bound, best.bound)
        reached = min(makespan, best.makespan)
        row: dict[str, object] = dict(zip(GAPS[:3], record.key, strict=True))
        row |= {"makespan": makespan, "best_known": best.makespan, "bound": least}
        row |= {"best_seconds": best.seconds, "best_revision": best.revision}
        if reached < least:
            row["reason"] = f"{reached} cycles are below the bound {least}: another problem?"
        else:
            row |= {
                "gap": (makespan - least) / makespan,
                "found_with_more_time": (makespan - reached) / makespan,
                "still_open": (reached - least) / makespan,
                "reason": "",
            }
        rows.append(row)
    frame = pd.DataFrame(rows, columns=GAPS)
    shares = dict.fromkeys(("gap", "found_with_more_time", "still_open"), "Float64")
    return frame.astype(shares).round(DIGITS)


def section_of_gaps(gaps: pd.DataFrame) -> Section:
    """Return for each solver what of its mean gap was found with more time, and what is open."""
    split = gaps[gaps["gap"].notna()]
    by_solver = split.groupby("solver", sort=False)
    means = by_solver[["gap", "found_with_more_time", "still_open"]].mean()
    means.insert(0, "runs", by_solver.size())
    return section("Found with more time", NOTE, means.reset_index(), BY_SOLVER)
