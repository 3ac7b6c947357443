"""Every format by name, and the files of one export."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import SpmilpError
from spmilp.export import (
    allocation_csv,
    allocation_md,
    binary,
    c_files,
    c_text,
    command_lists,
    dma,
    linker,
    minimalloc,
    netron,
    perfetto,
    tflm,
)
from spmilp.export.code import files as code_files
from spmilp.export.errors import ExportError
from spmilp.export.footprint import Footprint, footprint
from spmilp.export.player import files as player_files
from spmilp.export.player import program
from spmilp.export.subject import Subject
from spmilp.files import sha256_of, write_together

MANIFEST = "export.json"
"""Name of the list of a call's files; it has the origin of those that can have no head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One target of an export.

    Parameters
    ----------
    title
        Of the files, with version, for their heads and the manifest.
    make
        Returns the files by name. Names are fixed or numbered; none comes from the model.
    needs_model
        Whether it cannot be made without the model.
    summary
        One line for people.
    with_format
        Another format whose files these need; it is made too.
    """

    title: tuple[str, str]
    make: Callable[[Subject], dict[str, bytes]]
    summary: str
    needs_model: bool = False
    with_format: str | None = None


FORMATS: Mapping[str, Format] = {
    "c": Format(
        title=(c_text.NAME, c_text.VERSION),
        make=c_files.c_files,
        summary="tables for firmware, C99",
    ),
    "bin": Format(
        title=(binary.NAME, binary.VERSION),
        make=binary.binary,
        summary="the same tables in one binary file with a checksum",
    ),
    "player": Format(
        title=(program.NAME, program.VERSION),
        make=player_files.player,
        summary="a player in C99 that runs the tables, for a host and for bare metal",
        needs_model=True,
        with_format="c",
    ),
    "c-code": Format(
        title=(code_files.NAME, code_files.VERSION),
        make=code_files.code_files,
        summary="straight code in C99: a function for each core and DMA channel",
        needs_model=True,
    ),
    "commands": Format(
        title=(command_lists.NAME, command_lists.VERSION),
        make=command_lists.command_lists,
        summary="command lists of cores and DMA channels: waits, signals, tasks, transfers",
    ),
    "dma": Format(
        title=(dma.NAME, dma.VERSION),
        make=dma.dma_files,
        summary="DMA descriptors: a generic table, and chains for named controllers",
    ),
    "csv": Format(
        title=(allocation_csv.NAME, allocation_csv.VERSION),
        make=allocation_csv.allocation_csv,
        summary="allocation, one row for each residency",
    ),
    "md": Format(
        title=(allocation_md.NAME, allocation_md.VERSION),
        make=allocation_md.allocation_md,
        summary="allocation for people, one table for each memory",
    ),
    "minimalloc": Format(
        title=(minimalloc.NAME, minimalloc.VERSION),
        make=minimalloc.minimalloc,
        summary="offset allocation of each memory for MiniMalloc",
    ),
    "ld": Format(
        title=(linker.NAME, linker.VERSION),
        make=linker.linker,
        summary="fragment of a GNU ld script with a symbol for each residency",
    ),
    "tflm": Format(
        title=(tflm.NAME, tflm.VERSION),
        make=tflm.tflm,
        summary="TensorFlow Lite Micro's offline memory allocation (one scratchpad)",
    ),
    "onnx": Format(
        title=(netron.NAME, netron.VERSION),
        make=netron.netron,
        summary="the model with cores and addresses as metadata, for Netron",
        needs_model=True,
    ),
    "perfetto": Format(
        title=(perfetto.NAME, perfetto.VERSION),
        make=perfetto.perfetto,
        summary="timeline for ui.perfetto.dev",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The files of one call.

    Parameters
    ----------
    files
        Contents by file name, the manifest included.
    left_out
        ``(format, reason)`` of those that were wanted only if possible, and are not.
    failed
        The same of those that were wanted.
    footprint
        Of the C tables, if they were made and say what tasks compute.
    """

    files: Mapping[str, bytes]
    left_out: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...] = ()
    footprint: Footprint | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no format has made a file."""
        return set(self.files) <= {MANIFEST}

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
    for name in (known for known in FORMATS if known in asked):
        try:
            made = FORMATS[name].make(subject)
        except SpmilpError as error:
            reasons[name] = str(error)
            continue
        files |= made
        listed += [_entry(name, file, content) for file, content in made.items()]
    manifest = {**subject.stamp.fields("spmilp-export", "1.1"), "files": listed}
    files[MANIFEST] = (json.dumps(manifest, indent=2) + "\n").encode()
    has_programs = subject.network is not None and "c" in asked - set(reasons)
    return Exported(
        files=files,
        left_out=tuple(each for each in reasons.items() if each[0] not in needed),
        failed=tuple(each for each in reasons.items() if each[0] in needed),
        footprint=footprint(subject) if has_programs else None,
    )


def write_export(exported: Exported, folder: Path) -> tuple[Path, ...]:
    """Write all files into a folder, or none, and return their paths.

    Nothing is written where no format could be made.

    Raises
    ------
    FileError
        If one cannot be written.
    """
    return () if exported.is_empty else write_together(folder, exported.files)


def _entry(name: str, file: str, content: bytes) -> dict[str, object]:
    title, version = FORMATS[name].title
    return {
        "file": file,
        "export": name,
        "format": title,
        "format_version": version,
        "bytes": len(content),
        "sha256": sha256_of(content),
    }
