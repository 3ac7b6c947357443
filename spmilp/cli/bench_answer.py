"""What ``spmilp bench`` prints of a folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from spmilp.cli import output as out
from spmilp.errors import ExitCode

if TYPE_CHECKING:
    from spmilp.bench.records import Records
    from spmilp.bench.sections import Section


def print_report(
    folder: Path, best_known: Path | None, keep_best: Path | None, *, as_json: bool
) -> ExitCode:
    """Print the summary of a folder."""
    from spmilp.bench.folder import read_recorded

    records = read_recorded(folder)
    keep(keep_best, records)
    return print_records(records, best_known, as_json=as_json)


def print_comparison(folder: Path, other: Path, *, as_json: bool) -> ExitCode:
    """Print how the runs of a folder compare with those of another one."""
    from spmilp.bench.against import against as compared
    from spmilp.bench.folder import read_runs

    sections = list(compared(read_runs(folder), read_runs(other)))
    if as_json:
        out.print_json({each.title: _objects(each) for each in sections})
    else:
        _print_sections(sections, (f"{folder} (now) against {other} (before).",))
    return ExitCode.OK


def keep(file: Path | None, records: "Records") -> None:
    """Put better makespans into a file, and say which runs contradict it."""
    from spmilp.bench.best_known import keep_best

    for contradiction in [] if file is None else keep_best(file, records):
        out.print_error(contradiction)


def print_records(records: "Records", best_known: Path | None, *, as_json: bool) -> ExitCode:
    """Print the tables of a folder; its defects are errors."""
    from spmilp.bench.best_known import read_best
    from spmilp.bench.folder import sections_of_all, tables_of
    from spmilp.bench.sections import settings_of
    from spmilp.bench.summary import summary_frame, with_best_greedy
    from spmilp.bench.tables import defects

    tables = tables_of(records, None if best_known is None else read_best(best_known))
    runs = tables["runs"]
    if as_json:
        tables["summary"] = summary_frame(with_best_greedy(runs))
        del tables["progress"]
        out.print_json({name: out.records(table) for name, table in tables.items()})
    else:
        _print_sections(list(sections_of_all(tables, records)), settings_of(runs))
        out.console().print(f"tables: {records.folder}", markup=False, soft_wrap=True)
    wrong = list(defects(runs))
    for defect in wrong:
        out.print_error(f"{defect}. This is a defect of spmilp, please report it")
    return ExitCode.INTERNAL if wrong else ExitCode.OK


def _print_sections(sections: "Iterable[Section]", head: Iterable[str]) -> None:
    to = out.console()
    for line in head:
        to.print(line.replace("**", ""), markup=False, soft_wrap=True)
    for section in sections:
        to.print()
        to.print(section.title, markup=False, style="bold")
        if section.note:
            to.print(section.note.replace("`", ""), markup=False, soft_wrap=True)
        to.print(out.table(section.headings, section.rows, numbers=section.numbers))


def _objects(section: "Section") -> list[dict[str, str]]:
    return [dict(zip(section.headings, row, strict=True)) for row in section.rows]
