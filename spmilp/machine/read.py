"""Reading machine files: YAML in, a complete and usable machine out, or one clear message.

Sources of numbers, and other numbers for what-if questions, name fields by paths: parts joined by
dots, of which ``*`` stands for any; an element of a list goes by its name where it has one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import converted, fields_of, near_matches, ratio_from
from spmilp.machine.description import MachineDescription, ProvenanceFields
from spmilp.machine.expand import expand
from spmilp.machine.machine import Machine, machine_to_json
from spmilp.machine.routes import routes_of
from spmilp.machine.tenstorrent import is_soc_descriptor, machine_of_descriptor, preset_of
from spmilp.machine.zigzag import is_zigzag, machine_of_zigzag
from spmilp.quantities import byte_count, count, size

PRESETS = files("spmilp.machine") / "presets"
SUFFIXES = (".yaml", ".yml")

FieldPath: TypeAlias = tuple[str, ...]

WANTED = "the fields of a machine (name, core_kinds, scratchpads, dram)"

TEXT = frozenset({"name", "description", "provenance"})
"""Fields that have no provenance."""

USUAL_NAMES = {"scratchpads": "spm", "dram": "dram", "dma": "dma"}
"""Names of the elements of a list that give none, by the list's field."""

SIZES = ("size_bytes", "size_kib", "size_mib")
ENGINES = ("scratchpads.*.dma.*", "shared.*.dma.*", "dram.*.dma.*", "engines.*")
PLACES: Mapping[str, Sequence[str]] = {
    "spm": ("scratchpads.*.size_bytes",),
    "dma_channels": [f"{engine}.channels" for engine in ENGINES],
    "dma_rate": [f"{engine}.rate_bytes_per_cycle" for engine in ENGINES],
    "dram_rate": ("dram.*.rate_bytes_per_cycle",),
}
"""Paths of the numbers that have short names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of one value, mostly a number, of a machine file, as written at a path there.

    The source is a publication, a data sheet, a file of a public repository, or why it was assumed;
    it is verified if the source states the number.
    """

    field: str
    value: str
    source: str
    verified: bool


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
        label = _change(content, {**wanted, **(fields or {})})
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
    name, presets = str(name_or_path), list_presets()
    if name.endswith(SUFFIXES) or "/" in name or "\\" in name:
        return read_machine(read_bytes(name), name)
    if name not in presets:
        hint = near_matches(name, presets) or f"; there are {', '.join(presets)}"
        raise FileError(
            f"machine {name!r}: no preset of this name{hint} (a file is given with its ending "
            ".yaml)"
        )
    return read_machine(_preset(name), name)


def _preset(name: str) -> bytes:
    return (PRESETS / f"{name}.yaml").read_bytes()


def read_machine(data: bytes, origin: str) -> MachineFile:
    """Return the machine that the bytes of a YAML file describe.

    It may be a SoC descriptor of Tenstorrent or the hardware of Stream as well. Raises a
    ``FileError`` if it is no YAML, breaks its format, or describes a machine that cannot be used.
    """
    content = fields_of(data, origin, WANTED)
    try:
        if is_soc_descriptor(content):
            preset = fields_of(_preset(preset_of(content, origin)), origin, WANTED)
            content = machine_of_descriptor(content, preset, origin)
        elif is_zigzag(content):
            content, more = machine_of_zigzag(content, origin)
            data += more
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
    provenance = _provenance_of(content, description.provenance)
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


def _provenance_of(
    content: Mapping[str, object], entries: Sequence[ProvenanceFields]
) -> tuple[Provenance, ...]:
    """Return the origin of each number in a file's content, in the file's order.

    The entry with the longest matching path counts, among equals the one with the fewest ``*``,
    then the first. A number without an entry is unverified and has an empty source. A value that is
    no number counts when an entry names its whole path. Without entries there is nothing to say.

    Raises a ``ValueError`` if an entry matches nothing.
    """
    if not entries:
        return ()
    parts_of_file = _parts((), content)
    leaves = {at: v for at, v in parts_of_file if _is_value(v) and not TEXT.intersection(at)}
    named_by = [(field.split("."), entry) for entry in entries for field in entry.fields]
    # The most exact ones come first. A size that was set may be in another unit than before.
    named_by.sort(key=lambda one: (-len(one[0]), sum("*" in part for part in one[0])))
    patterns = [
        (tuple("size_*" if part in SIZES else part for part in parts), entry)
        for parts, entry in named_by
    ]
    for (pattern, _), (parts, _) in zip(patterns, named_by, strict=True):
        if not any(_matches(pattern, path) for path in leaves):
            known = sorted({".".join(path[:n]) for path in leaves for n in range(1, 6)})
            wanted = ".".join(parts)
            raise ValueError(f"provenance: no field {wanted}{near_matches(wanted, known)}")
    found = []
    for path, value in leaves.items():
        matching = [(p, entry) for p, entry in patterns if _matches(p, path)]
        named = any(len(p) == len(path) and p[-1] != "*" for p, _ in matching)
        if named or _is_number(value):
            best = matching[0][1] if matching else None
            found.append(
                Provenance(
                    field=".".join(path),
                    value=", ".join(map(str, value)) if isinstance(value, list) else str(value),
                    source=best.source if best else "",
                    verified=best is not None and best.verified,
                )
            )
    return tuple(found)


def _change(content: dict[str, Any], changes: Mapping[str, Any]) -> str:
    """Set values in the content of a machine file, and say there that no source confirms them.

    Changes are named as in :data:`PLACES`, or by path; sizes and rates are in any form that people
    write. The answer is the end of a machine's name: ``spm64KiB-dma_channels2``.

    Raises a ``ValueError`` if a value is no size or no rate, or there is nothing that it could be
    set for; what other values may be, the file's format says.
    """
    numbers = {name: _number(name, value) for name, value in changes.items()}
    label = "-".join(f"{name}{_short(name, number)}" for name, number in numbers.items())
    written = []
    for name, number in numbers.items():
        paths = PLACES.get(name, (name,))
        places = [place for path in paths for place in _places(path, content)]
        if name.endswith("_rate"):  # a DRAM without ports has none
            places = [(at, owner) for at, owner in places if owner.get(at[-1]) is not None]
        if not places:
            fields = sorted({".".join(at) for at, _ in _parts((), content)})
            hint = "" if name in PLACES else near_matches(name, fields)
            raise ValueError(f"{name}={number}: {content['name']} has no such field{hint}")
        for at, owner in places:
            # A size stands in the place of the one that there was, whatever its unit.
            old = next((size for size in SIZES if at[-1] in SIZES and size in owner), at[-1])
            renamed = {at[-1] if each == old else each: inside for each, inside in owner.items()}
            owner.clear()
            owner.update(renamed)
            owner[at[-1]] = number
            written.append(".".join(at))
    if written and content.get("provenance"):
        source = f"Set by the user ({label})."
        content["provenance"].insert(0, {"fields": written, "source": source, "verified": False})
    return label


def _number(name: str, value: Any) -> int | str:
    """Return what a value is in a file: bytes, or a rate as text."""
    try:
        if name == "spm":
            return byte_count(value)
        if name in ("dma_rate", "dram_rate"):
            return str(ratio_from(value))
    except ValueError as error:
        raise ValueError(f"{name}={value!r}: {error}") from error
    return str(value) if isinstance(value, Fraction) else value


def _short(name: str, number: int | str) -> int | str:
    is_kib = name == "spm" and isinstance(number, int) and number % 1024 == 0
    return f"{int(number) // 1024}KiB" if is_kib else number


def _places(path: str, content: object) -> list[tuple[FieldPath, dict[str, Any]]]:
    """Return the fields, there or not, that a path with ``*`` means, and their owners."""
    *owner, field = path.split(".")
    return [
        ((*at, field), part)
        for at, part in _parts((), content)
        if isinstance(part, dict) and len(at) == len(owner) and _matches(tuple(owner), at)
    ]


def _parts(path: FieldPath, content: Any) -> Iterator[tuple[FieldPath, Any]]:
    """Yield all parts of a file by path, each before what is inside; elements by name or number."""
    yield path, content
    if _is_value(content):
        return
    for index, inside in content.items() if isinstance(content, dict) else enumerate(content):
        name = index
        if isinstance(content, list) and isinstance(inside, dict):
            name = inside.get("name", USUAL_NAMES.get(path[-1], index))
        yield from _parts((*path, str(name)), inside)


def _is_value(content: object) -> bool:
    """Say whether a part of a file is one value, or a list of plain ones."""
    if isinstance(content, list):
        return not any(isinstance(inside, dict | list) for inside in content)
    return not isinstance(content, dict)


def _is_number(value: object) -> bool:
    if isinstance(value, list):
        return any(_is_number(element) for element in value)
    if isinstance(value, str):
        return value.replace("/", "").replace(".", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Return whether a pattern, part by part, is the path or the beginning of it."""
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))
