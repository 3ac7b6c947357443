"""Every format by name, an export as users ask for it, and its files."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spmilp.errors import ArgumentError, SpmilpError
from spmilp.export import npe, packed, perfetto, sources, straight, tables
from spmilp.export.errors import ExportError
from spmilp.export.packed import Footprint, footprint
from spmilp.export.subject import Subject, Title
from spmilp.files import sha256_of, write_together
from spmilp.formats import collector_paused
from spmilp.frontend.load import load_network_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

ALL = "all"

MANIFEST = "export.json"
"""Name of the list of a call's files; it has the origin of those that can have no head."""


class Format(NamedTuple):
    """One target of an export: its title, and what makes its files by name.

    Names of files are fixed or numbered; none comes from the model.
    """

    title: Title
    make: Callable[[Subject], dict[str, bytes]]
    needs_model: bool = False


FORMATS: Mapping[str, Format] = {
    "c": Format(sources.TITLE, packed.packed_files, needs_model=True),
    "player": Format(sources.PLAYER, packed.player_files, needs_model=True),
    "c-code": Format(straight.TITLE, straight.straight_files, needs_model=True),
    "commands": Format(tables.COMMANDS, tables.command_table),
    "dma": Format(tables.DMA, tables.descriptor_table),
    "csv": Format(tables.ALLOCATION, tables.allocation_table),
    "perfetto": Format(perfetto.TITLE, perfetto.perfetto),
    "npe": Format(npe.TITLE, npe.npe),
}
"""``docs/exports.md`` says what each of them is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The contents of the files of one call by name, the manifest included.

    Formats that were wanted only if possible, and are not made, are ``left_out`` with the reason;
    those that were wanted ``failed``. The footprint is that of packed tables, if they were made.
    """

    files: Mapping[str, bytes]
    left_out: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...]
    footprint: Footprint | None

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write all files into a folder, or none, and return their paths."""
        return write_together(folder, self.files) if self.files else ()

    def require_all(self) -> None:
        """Raise an :class:`ExportError` with the reasons unless each wanted format is made."""
        if self.failed:
            reasons = dict.fromkeys(reason for _, reason in self.failed)
            rest = " (the other formats are written)" if self.files else ""
            raise ExportError("; ".join(reasons) + rest)


def export_plan(
    problem: Problem,
    plan: Plan,
    formats: Iterable[str],
    *,
    model: str | Path | Sequence[str | Path] | None,
    dims: Mapping[str, int],
    prefix: str,
) -> Exported:
    """Make the files in memory, from a plan that the checker has accepted.

    Parameters and errors are those of :meth:`spmilp.Result.export`.
    """
    named = _named(formats, has_model=model is not None)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", prefix):
        raise ArgumentError(
            f"prefix {prefix!r}: expected a letter, then at most 30 letters, digits or _",
            is_option=True,
        )
    network = None if model is None else load_network_of(problem, model, dims)[1]
    subject = Subject(problem=problem, plan=plan, network=network, prefix=prefix)
    able = [name for name, each in FORMATS.items() if network is not None or not each.needs_model]
    with collector_paused():
        return export(subject, set(named) - {ALL}, able if ALL in named else ())


def _named(formats: Iterable[str], *, has_model: bool) -> list[str]:
    """Return the names of lists like ``csv,dma``; every name must be known."""
    named = [name.strip() for text in formats for name in text.split(",") if name.strip()]
    known = f"there are {', '.join(FORMATS)} and {ALL}"
    if not named:
        raise ArgumentError(f"format: {known}", is_option=True)
    for name in named:
        if name != ALL and name not in FORMATS:
            raise ArgumentError(f"format {name}: {known}", is_option=True)
        if name != ALL and FORMATS[name].needs_model and not has_model:
            raise ArgumentError(
                f"format {name} needs the model: add --model MODEL.onnx", is_option=True
            )
    return named


def export(
    subject: Subject, wanted: Iterable[str], only_if_possible: Iterable[str] = ()
) -> Exported:
    """Make the files of several formats in memory; some are left out where they are not possible.

    A format that cannot take the plan does not keep the others from being made.
    """
    needed, files = set(wanted), dict[str, bytes]()
    listed: dict[str, dict[str, object]] = {}
    left_out, failed = list[tuple[str, str]](), list[tuple[str, str]]()
    taken = None
    for name, (title, make, _) in FORMATS.items():
        if name not in needed and name not in set(only_if_possible):
            continue
        try:
            made = make(subject)
        except SpmilpError as error:
            (failed if name in needed else left_out).append((name, str(error)))
            continue
        if name in ("c", "player"):
            taken = footprint(subject)
        for file, content in made.items():
            files[file] = content
            listed[file] = {
                "file": file,
                "export": name,
                "format": title[0],
                "format_version": title[1],
                "bytes": len(content),
                "sha256": sha256_of(content),
            }
    if files:
        origin = subject.fields(("spmilp-export", "1.1"))
        manifest = {**origin, "files": list(listed.values())}
        files[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
    return Exported(files=files, left_out=tuple(left_out), failed=tuple(failed), footprint=taken)
