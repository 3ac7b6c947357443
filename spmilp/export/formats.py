"""Every format by name, an export as users ask for it, and its files."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spmilp.errors import ArgumentError, SpmilpError
from spmilp.export import (
    allocation,
    c_text,
    command_lists,
    dma,
    linker,
    netron,
    packed,
    perfetto,
    player,
    straight,
)
from spmilp.export.errors import ExportError
from spmilp.export.packed import Footprint, footprint
from spmilp.export.subject import Subject, Title
from spmilp.files import read_bytes, sha256_of, write_together
from spmilp.formats import collector_paused
from spmilp.frontend.load import load_network_of
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

ALL = "all"

MANIFEST = "export.json"
"""Name of the list of a call's files; it has the origin of those that can have no head."""

MICROCONTROLLER_BYTES = 16 << 20
"""Bytes on chip up to which a machine is like a microcontroller."""


class Format(NamedTuple):
    """One target of an export: its title, and what makes its files by name.

    Names of files are fixed or numbered; none comes from the model. ``with_format`` is another
    format whose files these need; it is made too.
    """

    title: Title
    make: Callable[[Subject], dict[str, bytes]]
    needs_model: bool = False
    with_format: str | None = None


FORMATS: Mapping[str, Format] = {
    "c": Format(c_text.TITLE, packed.packed_files, needs_model=True),
    "player": Format(c_text.PLAYER, player.player_files, needs_model=True, with_format="c"),
    "c-code": Format(straight.TITLE, straight.straight_files, needs_model=True),
    "commands": Format(command_lists.TITLE, command_lists.command_lists),
    "dma": Format(dma.TITLE, dma.dma_files),
    "csv": Format(allocation.CSV, allocation.allocation_csv),
    "minimalloc": Format(allocation.MINIMALLOC, allocation.minimalloc),
    "ld": Format(linker.TITLE, linker.linker),
    "onnx": Format(netron.TITLE, netron.netron, needs_model=True),
    "perfetto": Format(perfetto.TITLE, perfetto.perfetto),
}
"""``docs/exports.md`` says what each of them is."""


def is_like_microcontroller(machine: Machine) -> bool:
    """Say whether a machine has so little memory on chip that its flash will be scarce too."""
    on_chip = [memory.size or 0 for memory in machine.memories if memory.kind != MemoryKind.DRAM]
    return sum(on_chip) <= MICROCONTROLLER_BYTES


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

    @property
    def is_empty(self) -> bool:
        """Whether no format has made a file."""
        return set(self.files) <= {MANIFEST}

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write all files into a folder, or none, and return their paths; none if it is empty.

        Raises
        ------
        FileError
            If one cannot be written.
        """
        return () if self.is_empty else write_together(folder, self.files)

    def require_all(self) -> None:
        """Make sure that each wanted format has been made.

        Raises
        ------
        ExportError
            If one has not; the message has the reasons.
        """
        if self.failed:
            reasons = dict.fromkeys(reason for _, reason in self.failed)
            rest = "" if self.is_empty else " (the other formats are written)"
            raise ExportError("; ".join(reasons) + rest)


def export_plan(
    problem: Problem,
    plan: Plan,
    formats: Iterable[str],
    *,
    model: str | Path | None,
    dims: Mapping[str, int],
    prefix: str,
    controllers: Iterable[str],
) -> Exported:
    """Make the files in memory, from a plan that the checker has accepted.

    Parameters
    ----------
    formats
        Names, several in one with commas between them; ``all`` for each that can take the plan.
    model, dims
        The source of the problem; some formats need it.
    prefix
        Beginning of the names of C objects.
    controllers
        ``NAME`` for all engines, or ``ENGINE=NAME`` with ``*`` and ``?`` in the engine's name.

    Raises
    ------
    ArgumentError
        If a name is unknown, or a format needs a model and there is none.
    FileError
        If the model cannot be used or is another one.
    """
    named = _named(formats, has_model=model is not None)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", prefix):
        raise ArgumentError(
            f"prefix {prefix!r}: expected a letter, then at most 30 letters, digits or _",
            is_option=True,
        )
    chosen = tuple(map(_controller, controllers))
    network, content = None, None
    if model is not None:
        file, network = load_network_of(problem, model, dims)
        content = read_bytes(file)
    subject = Subject(
        problem=problem,
        plan=plan,
        network=network,
        model=content,
        prefix=prefix,
        controllers=chosen,
    )
    wanted = [name for name in named if name != ALL]
    able = [name for name, each in FORMATS.items() if model is not None or not each.needs_model]
    with collector_paused():
        return export(subject, wanted, able if ALL in named else ())


def _named(formats: Iterable[str], *, has_model: bool) -> list[str]:
    """Return the names of lists like ``csv,ld``; every name must be known."""
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


def _controller(text: str) -> tuple[str, str]:
    engine, equals, name = text.rpartition("=")
    if name not in dma.ENCODINGS or (equals and not engine):
        raise ArgumentError(
            f"controller {text}: expected NAME or ENGINE=NAME; there are "
            f"{', '.join(dma.ENCODINGS)}",
            is_option=True,
        )
    return engine or "*", name


def export(
    subject: Subject, wanted: Iterable[str], only_if_possible: Iterable[str] = ()
) -> Exported:
    """Make the files of several formats in memory.

    A format that cannot take the plan does not keep the others from being made.

    Parameters
    ----------
    wanted
        Names of formats that must be made, with those whose files they need.
    only_if_possible
        Names of formats that are left out where the plan exceeds a limit of their target.

    Raises
    ------
    KeyError
        If there is no format of a name.
    """
    files: dict[str, bytes] = {}
    listed: list[dict[str, object]] = []
    reasons: dict[str, str] = {}
    needed = set(wanted)
    needed |= {FORMATS[name].with_format or name for name in needed}
    asked = needed | set(only_if_possible)
    for name, (title, make, *_) in FORMATS.items():
        if name not in asked:
            continue
        try:
            made = make(subject)
        except SpmilpError as error:
            reasons[name] = str(error)
            continue
        files |= made
        listed += [
            {
                "file": file,
                "export": name,
                "format": title[0],
                "format_version": title[1],
                "bytes": len(content),
                "sha256": sha256_of(content),
            }
            for file, content in made.items()
        ]
    manifest = {**subject.fields(("spmilp-export", "1.1")), "files": listed}
    files[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
    return Exported(
        files=files,
        left_out=tuple(each for each in reasons.items() if each[0] not in needed),
        failed=tuple(each for each in reasons.items() if each[0] in needed),
        footprint=footprint(subject) if "c" in asked - set(reasons) else None,
    )
