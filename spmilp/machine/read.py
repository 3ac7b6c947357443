"""Reading machine files: YAML in, a complete and usable machine out, or one clear message."""

from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of
from spmilp.machine.description import MachineDescription
from spmilp.machine.expand import expand
from spmilp.machine.fields import field_names, what_is_wrong
from spmilp.machine.machine import Machine
from spmilp.machine.parse import fields_of
from spmilp.machine.provenance import Provenance, provenance_of
from spmilp.machine.routes import Routes
from spmilp.machine.scaled import AS_IT_IS, Scale, scaled

PRESETS = files("spmilp.machine") / "presets"
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFile:
    """A machine and the file it was read from.

    Parameters
    ----------
    sha256
        Of the file's bytes, and of the scale's label where it is not the file's machine.
    provenance
        Of each number in the file, in the file's order; empty when the file has no such section.
    """

    machine: Machine
    sha256: str
    provenance: tuple[Provenance, ...]


def list_presets() -> tuple[str, ...]:
    """Return the names of the machines that come with the package, sorted."""
    names = (Path(entry.name) for entry in PRESETS.iterdir())
    return tuple(sorted(name.stem for name in names if name.suffix in SUFFIXES))


def load_machine(name_or_path: str, scale: Scale = AS_IT_IS) -> MachineFile:
    """Return a preset by name, or the machine of a YAML file by path.

    What ends in ``.yaml`` or ``.yml`` or has a folder in it is a path.

    Parameters
    ----------
    scale
        Other DRAM rates and scratchpad sizes than the file has.

    Raises
    ------
    FileError
        If there is no such preset or file, or the file does not describe a usable machine.
    """
    return read_machine(machine_bytes(name_or_path), name_or_path, scale)


def machine_bytes(name_or_path: str) -> bytes:
    """Return the file that :func:`load_machine` reads.

    Raises
    ------
    FileError
        If there is no such preset or file.
    """
    if name_or_path.endswith(SUFFIXES) or "/" in name_or_path or "\\" in name_or_path:
        return read_bytes(name_or_path)
    presets = list_presets()
    if name_or_path not in presets:
        near = get_close_matches(name_or_path, presets, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(presets)}"
        raise FileError(
            f"machine {name_or_path!r}: no preset of this name; {hint} "
            "(a file is given with its ending .yaml)"
        )
    return (PRESETS / f"{name_or_path}.yaml").read_bytes()


def read_machine(data: bytes, origin: str, scale: Scale = AS_IT_IS) -> MachineFile:
    """Return the machine that the bytes of a YAML file describe.

    Parameters
    ----------
    origin
        What messages call the file.
    scale
        Other DRAM rates and scratchpad sizes than the file has.

    Raises
    ------
    FileError
        If it is no YAML, breaks the format, or describes a machine that cannot be used.
    """
    content = fields_of(data, origin)
    try:
        description = MachineDescription.model_validate(content)
        provenance = provenance_of(content, description.provenance)
        machine = expand(description if scale == AS_IT_IS else scaled(description, scale))
        every_core_is_fed(machine)
    except ValidationError as error:
        wrong = what_is_wrong(error, field_names(MachineDescription))
        raise FileError(f"{origin}: {wrong}") from error
    except ValueError as error:
        raise FileError(f"{origin}: {error}") from error
    unverified = tuple(entry.field for entry in provenance if not entry.verified)
    return MachineFile(
        machine=replace(machine, unverified=unverified),
        sha256=sha256_of(data + scale.label.encode()),
        provenance=provenance,
    )


def every_core_is_fed(machine: Machine) -> None:
    """Check that data can get from a DRAM to every core and from every core to a DRAM.

    Raises
    ------
    ValueError
        If no chain of engines fills or drains the memory of some core.
    """
    routes = Routes(machine)
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
