"""Reading machine files: YAML in, a complete and usable machine out, or one clear message."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import converted, fields_of, near_matches
from spmilp.machine.changed import Provenance, change, provenance_of
from spmilp.machine.description import MachineDescription
from spmilp.machine.expand import expand
from spmilp.machine.machine import Machine, machine_to_json
from spmilp.machine.routes import routes_of
from spmilp.quantities import count, size

PRESETS = files("spmilp.machine") / "presets"
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MachineFile:
    """A machine and where it comes from: a preset, a file, or a change of one.

    Parameters
    ----------
    machine
        Its memories, cores, links and DMA engines.
    sha256
        Of the file's bytes, and of the changes where it is not the file's machine.
    provenance
        Of each number in the file, in the file's order; empty when the file has no such section.
    content
        The fields of the file; ``None`` for a machine that comes from none.
    """

    machine: Machine
    sha256: str
    provenance: tuple[Provenance, ...] = ()
    content: Mapping[str, Any] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        sizes = " or ".join(sorted({size(spm.size or 0) for spm in self.machine.spms}))
        cores = count(len(self.machine.cores), "core")
        return f"<machine {self.machine.name}: {cores}, scratchpads of {sizes}>"

    def replace(
        self,
        *,
        spm: str | int | None = None,
        dma_channels: int | None = None,
        dma_rate: str | float | None = None,
        dram_rate: str | float | None = None,
        name: str | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> "MachineFile":
        """Return the machine with other numbers; what is left out stays as it is.

        The new machine has a hash and a name of its own, and its numbers that were set count as
        confirmed by no source.

        Parameters
        ----------
        spm
            Bytes of each scratchpad, reserved ones included: ``65536`` or ``"64KiB"``.
        dma_channels
            Transfers that each DMA engine runs at one time.
        dma_rate
            Bytes per cycle of each DMA engine, as 8, 23.5 or "47/2".
        dram_rate
            Bytes per cycle of each port of each DRAM. Engines and links behind the ports keep
            theirs, so that a large rate may have less effect than it says.
        name
            By default the old one with the changes behind it.
        fields
            Values by field: the ones above by their names, any others by their paths, as
            ``provenance`` has them in a machine file: ``{"topology.latency_cycles": 2,
            "core_kinds.*.launch_cycles": 10}``.

        Raises
        ------
        ValueError
            If a value is not possible, or makes the machine unusable.

        Examples
        --------
        >>> load_machine("mesh4x4").replace(spm="64KiB", dram_rate=8)
        <machine mesh4x4-spm64KiB-dram_rate8: 16 cores, scratchpads of 64.0 KiB>
        """
        given = {
            "spm": spm,
            "dma_channels": dma_channels,
            "dma_rate": dma_rate,
            "dram_rate": dram_rate,
        }
        wanted = {field: value for field, value in given.items() if value is not None}
        if self.content is None:
            raise ValueError(f"{self.machine.name} comes from no file: nothing can be replaced")
        content = msgspec.to_builtins(self.content)
        label = change(content, {**wanted, **(fields or {})})
        content["name"] = name or "-".join(filter(None, (content["name"], label)))
        try:
            return _machine_file(content, f"{self.sha256} {label}".encode())
        except ValueError as error:
            raise ValueError(f"{label}: {error}") from error


def list_presets() -> tuple[str, ...]:
    """Return the names of the machines that come with the package, sorted."""
    names = (Path(entry.name) for entry in PRESETS.iterdir())
    return tuple(sorted(name.stem for name in names if name.suffix in SUFFIXES))


def load_machine(name_or_path: str | Path) -> MachineFile:
    """Read a machine: a preset by name, or a YAML file by path.

    ``spmilp machines`` lists the presets. What ends in ``.yaml`` or ``.yml`` or has a folder in it
    is a path.

    Parameters
    ----------
    name_or_path
        ``mesh4x4``, or ``machines/mine.yaml``.

    Returns
    -------
    MachineFile
        The ``machine``, its hash, and where its numbers come from.

    Raises
    ------
    FileError
        If there is no such preset or file, or the file does not describe a usable machine.

    Examples
    --------
    >>> spmilp.load_machine("mesh4x4").replace(spm="64KiB", dma_channels=2, dram_rate=8)
    """
    name = str(name_or_path)
    return read_machine(machine_bytes(name), name)


def machine_bytes(name_or_path: str) -> bytes:
    """Return the file that :func:`load_machine` reads."""
    if name_or_path.endswith(SUFFIXES) or "/" in name_or_path or "\\" in name_or_path:
        return read_bytes(name_or_path)
    presets = list_presets()
    if name_or_path not in presets:
        hint = near_matches(name_or_path, presets) or f"; there are {', '.join(presets)}"
        raise FileError(
            f"machine {name_or_path!r}: no preset of this name{hint} "
            "(a file is given with its ending .yaml)"
        )
    return (PRESETS / f"{name_or_path}.yaml").read_bytes()


def read_machine(data: bytes, origin: str) -> MachineFile:
    """Return the machine that the bytes of a YAML file describe.

    Raises a ``FileError`` if it is no YAML, breaks the format, or describes a machine that cannot
    be used.
    """
    wanted = "the fields of a machine (name, core_kinds, scratchpads, dram)"
    content = fields_of(data, origin, wanted)
    try:
        return _machine_file(content, data)
    except ValueError as error:
        raise FileError(f"{origin}: {error}") from error


def as_machine_file(machine: "str | Path | Machine | MachineFile") -> MachineFile:
    """Return a machine with where it comes from, however it is given; see :func:`load_machine`."""
    if isinstance(machine, MachineFile):
        return machine
    if isinstance(machine, Machine):
        text = json.dumps(machine_to_json(machine), sort_keys=True)
        return MachineFile(machine=machine, sha256=sha256_of(text.encode()))
    return load_machine(machine)


def _machine_file(content: dict[str, Any], hashed: bytes) -> MachineFile:
    """Return the machine of a file's content."""
    description = converted(content, MachineDescription)
    provenance = provenance_of(content, description.provenance)
    machine = expand(description)
    _every_core_is_fed(machine)
    unverified = tuple(entry.field for entry in provenance if not entry.verified)
    return MachineFile(
        machine=replace(machine, unverified=unverified),
        sha256=sha256_of(hashed),
        provenance=provenance,
        content=content,
    )


def _every_core_is_fed(machine: Machine) -> None:
    """Check that data can get from a DRAM to every core and from every core to a DRAM."""
    routes = routes_of(machine)
    for core in machine.cores:
        memory = machine.memories[core.memory]
        drams = ", ".join(dram.name for dram in machine.drams)
        if not any(routes.staging_path(dram.index, core.memory) for dram in machine.drams):
            missing = f"from {drams} to its memory {memory.name}"
        elif not any(routes.staging_path(core.memory, dram.index) for dram in machine.drams):
            missing = f"from its memory {memory.name} to {drams}"
        else:
            continue
        raise ValueError(
            f"core {core.name}: no engine moves data {missing}; add a link or an engine"
        )
