"""Sources of the numbers of a machine, and machines with other numbers, for what-if questions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, TypeAlias

from pydantic import ValidationError

from spmilp.machine.description import MachineDescription, ProvenanceFields, ScratchpadFields
from spmilp.machine.fields import near_matches, rate_from, what_is_wrong
from spmilp.quantities import byte_count
from spmilp.units import Bytes

Leaf: TypeAlias = tuple[tuple[str, ...], str, bool]
"""The path of a value in a file, how it is written, and whether it is a number."""

TEXT = frozenset({"name", "description", "provenance"})
USUAL_NAMES = {"scratchpads": "spm", "dram": "dram", "dma": "dma"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of one value, mostly a number, of a machine file.

    Parameters
    ----------
    field
        Its path, parts joined by dots; an element of a list goes by its name where it has one.
    value
        As written in the file.
    source
        A publication, a data sheet, a file of a public repository, or why it was assumed.
    verified
        Whether the source states the number.
    """

    field: str
    value: str
    source: str
    verified: bool


def provenance_of(
    content: dict[str, object], entries: Sequence[ProvenanceFields]
) -> tuple[Provenance, ...]:
    """Return the origin of each number in a file's content, in the file's order.

    The entry with the longest matching path counts, among equals the one with the fewest ``*``,
    then the first. A number without an entry is unverified and has an empty source. A value that is
    no number counts when an entry names its whole path. Without entries there is nothing to say.

    Raises
    ------
    ValueError
        If an entry matches nothing.
    """
    if not entries:
        return ()
    leaves = list(_leaves((), content))
    patterns = [(tuple(field.split(".")), entry) for entry in entries for field in entry.fields]
    for pattern, _ in patterns:
        if not any(_matches(pattern, path) for path, _, _ in leaves):
            known = sorted({".".join(path[:n]) for path, _, _ in leaves for n in range(1, 6)})
            wanted = ".".join(pattern)
            raise ValueError(f"provenance: no field {wanted}{near_matches(wanted, known)}")
    found = []
    for path, value, is_number in leaves:
        matching = [(p, entry) for p, entry in patterns if _matches(p, path)]
        named = any(len(p) == len(path) and p[-1] != "*" for p, _ in matching)
        if not is_number and not named:
            continue
        best = max(matching, key=lambda match: _precision(match[0]), default=None)
        found.append(
            Provenance(
                field=".".join(path),
                value=value,
                source=best[1].source if best else "",
                verified=best[1].verified if best else False,
            )
        )
    return tuple(found)


def _precision(pattern: tuple[str, ...]) -> tuple[int, int]:
    """Return a measure by which an entry's path says more than another's."""
    return len(pattern), -sum("*" in part for part in pattern)


def _leaves(path: tuple[str, ...], content: object) -> Iterator[Leaf]:
    """Yield the values inside a part of a file, except those that only name it."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in TEXT:
                yield from _leaves((*path, str(key)), value)
    elif isinstance(content, list) and any(isinstance(value, dict | list) for value in content):
        for index, value in enumerate(content):
            named = isinstance(value, dict) and value.get("name", USUAL_NAMES.get(path[-1]))
            yield from _leaves((*path, str(named or index)), value)
    else:
        yield path, _written(content), _is_number(content)


def _written(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _is_number(value: object) -> bool:
    if isinstance(value, list):
        return any(_is_number(element) for element in value)
    if isinstance(value, str):
        return value.replace("/", "").replace(".", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Return whether a pattern, part by part, is the path or the beginning of it."""
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))


SIZES = ("size_bytes", "size_kib", "size_mib")


def numbers_of(changes: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the numbers that are meant; rates as text.

    Parameters
    ----------
    changes
        Some of ``spm``, ``dma_channels``, ``dma_rate``, ``dram_rate``, and paths of fields, as
        :meth:`~spmilp.machine.read.MachineFile.replace` has them.

    Raises
    ------
    ValueError
        If a value is nothing of its kind; the message names field and value.
    """
    numbers = {}
    for name, value in changes.items():
        try:
            numbers[name] = _READERS.get(name, _value_at_path)(value)
        except ValueError as error:
            raise ValueError(f"{name}={value!r}: {error}") from error
    return numbers


def changed(
    description: MachineDescription, numbers: Mapping[str, int | str]
) -> tuple[MachineDescription, dict[str, str]]:
    """Return the description with other numbers, and what is written where by path of field.

    Raises
    ------
    ValueError
        If there is nothing that a number could be set for, or the format does not allow it.
    """
    fields = description.model_dump(mode="json", exclude_unset=True)
    written: dict[str, str] = {}
    for name, number in numbers.items():
        places = list(_PLACES[name](fields) if name in _PLACES else _places_of(name, fields))
        if not places:
            raise ValueError(f"{name}={number}: {description.name} has none that could be set")
        for path, owner, field in places:
            if field in SIZES:
                for other in SIZES:
                    owner.pop(other, None)
            owner[field] = number
            written[f"{path}.{field}"] = str(number)
    try:
        return MachineDescription.model_validate(fields), written
    except ValidationError as error:
        wrong = what_is_wrong(error, MachineDescription)
        raise ValueError(f"{label_of(numbers)}: {wrong}") from error


def label_of(numbers: Mapping[str, int | str]) -> str:
    """Return what a changed machine's name has at its end, as ``spm64KiB-dma_channels2``."""
    parts = (f"{name}{_short(name, number)}" for name, number in numbers.items())
    return "-".join(parts)


def _short(name: str, number: int | str) -> str:
    if name == "spm" and isinstance(number, int) and number % 1024 == 0:
        return f"{number // 1024}KiB"
    return str(number)


def provenance_after(
    before: tuple[Provenance, ...], written: Mapping[str, str], label: str
) -> tuple[Provenance, ...]:
    """Return the origins of all numbers: those that were set anew are confirmed by no source.

    A machine whose file says nothing of origins still does not.
    """
    if not before:
        return ()
    fresh = {
        field: Provenance(
            field=field, value=value, source=f"Set by the user ({label}).", verified=False
        )
        for field, value in written.items()
    }
    kept = []
    for entry in before:
        field = entry.field
        owner, _, last = field.rpartition(".")
        if last in SIZES and f"{owner}.size_bytes" in fresh:
            field = f"{owner}.size_bytes"
        kept.append(fresh.pop(field, entry))
    return (*kept, *fresh.values())


def _channels(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("expected a whole number of 1 or more")
    return value


def _rate(value: Any) -> str:
    return str(rate_from(value))


def _value_at_path(value: Any) -> Any:
    """Return a value as a file holds it; what it may be, the field's type decides."""
    return str(value) if isinstance(value, Fraction) else value


def _places_of(path: str, fields: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    """Return the owners of the fields at a path, which may have ``*`` for one of its parts.

    Raises
    ------
    ValueError
        If there is no such place; the message says what is there.
    """
    *parts, last = path.split(".")
    owners: list[tuple[tuple[str, ...], Any]] = [((), fields)]
    for depth, part in enumerate(parts):
        inside = [((*at, name), each) for at, owner in owners for name, each in _inside(at, owner)]
        owners = [(at, each) for at, each in inside if fnmatchcase(at[-1], part)]
        if not owners:
            names = sorted({at[-1] for at, _ in inside})
            where = f"in {'.'.join(parts[:depth])} " if depth else ""
            there = f"there are {', '.join(names)}" if names else "there is nothing"
            raise ValueError(f"{path}: {where}{there}, not {part}{near_matches(part, names)}")
    plain = [at for at, owner in owners if not isinstance(owner, dict)]
    if plain:
        raise ValueError(f"{path}: {'.'.join(plain[0])} is a value and has no fields")
    return [(".".join(at), owner, last) for at, owner in owners]


def _inside(at: tuple[str, ...], owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a file's part by name; elements of a list by name or number."""
    if isinstance(owner, dict):
        yield from ((str(name), each) for name, each in owner.items())
    elif isinstance(owner, list):
        for index, each in enumerate(owner):
            usual = USUAL_NAMES.get(at[-1])
            name = each.get("name", usual) if isinstance(each, dict) else None
            yield str(index if name is None else name), each


def _scratchpads(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    for pad in fields["scratchpads"]:
        yield f"scratchpads.{pad.get('name', 'spm')}", pad, "size_bytes"


def _engines(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    owners = [(f"scratchpads.{pad.get('name', 'spm')}", pad) for pad in fields["scratchpads"]]
    owners += [(f"shared.{memory['name']}", memory) for memory in fields.get("shared", ())]
    owners += [(f"dram.{dram.get('name', 'dram')}", dram) for dram in fields["dram"]]
    for path, owner in owners:
        for engine in owner.get("dma", ()):
            yield f"{path}.dma.{engine.get('name', 'dma')}", engine
    for engine in fields.get("engines", ()):
        yield f"engines.{engine['name']}", engine


def _ports(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    for dram in fields["dram"]:
        if dram.get("sites"):
            yield f"dram.{dram.get('name', 'dram')}", dram, "rate_bytes_per_cycle"


_READERS: Mapping[str, Any] = {
    "spm": byte_count,
    "dma_channels": _channels,
    "dma_rate": _rate,
    "dram_rate": _rate,
}
_PLACES: Mapping[str, Any] = {
    "spm": _scratchpads,
    "dma_channels": lambda fields: ((*place, "channels") for place in _engines(fields)),
    "dma_rate": lambda fields: ((*place, "rate_bytes_per_cycle") for place in _engines(fields)),
    "dram_rate": _ports,
}


SAME = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """By what to multiply; 1 leaves everything as it is.

    Parameters
    ----------
    dram
        For the rate of each port of each DRAM. Engines and links behind the ports keep theirs, so
        that a large factor may have less effect than it says.
    spm
        For the bytes of each scratchpad that plans may use. Reserved ranges keep their sizes and
        their order. Memories without cores stay as they are.
    """

    dram: Fraction = SAME
    spm: Fraction = SAME

    def __post_init__(self) -> None:
        for name, factor in (("dram", self.dram), ("spm", self.spm)):
            if factor <= 0:
                raise ValueError(f"factor {factor} of {name}: expected a number > 0")

    @property
    def label(self) -> str:
        """What a scaled machine's name has at its end, as ``-dram0.5-spm0.25``; empty for 1."""
        parts = (("dram", self.dram), ("spm", self.spm))
        return "".join(f"-{name}{shown(factor)}" for name, factor in parts if factor != SAME)


AS_IT_IS = Scale()


def shown(factor: Fraction) -> str:
    """Return a factor as a decimal number, or as ``1of3`` where it is none of a few digits."""
    decimal = f"{float(factor):.4f}".rstrip("0").rstrip(".")
    same = Fraction(decimal) == factor
    return decimal if same else f"{factor.numerator}of{factor.denominator}"


def scaled(description: MachineDescription, scale: Scale) -> MachineDescription:
    """Return the description of a machine with other DRAM rates and scratchpad sizes.

    Raises
    ------
    ValueError
        If a rate gets too fine for solvers, or nothing is left of a scratchpad.
    """
    drams = tuple(
        dram.model_copy(
            update={
                "rate_bytes_per_cycle": None
                if dram.rate_bytes_per_cycle is None
                else rate_from(str(dram.rate_bytes_per_cycle * scale.dram))
            }
        )
        for dram in description.dram
    )
    scratchpads = tuple(_resized(pad, scale.spm) for pad in description.scratchpads)
    return description.model_copy(
        update={
            "name": f"{description.name}{scale.label}",
            "dram": drams,
            "scratchpads": scratchpads,
        }
    )


def _resized(pad: ScratchpadFields, factor: Fraction) -> ScratchpadFields:
    if pad.size is None or factor == SAME:
        return pad
    *reserved, end = _moved(pad.size, pad.reserved_byte_ranges, factor, pad.alignment_bytes)
    size = end[0]
    if size == sum(upper - lower for lower, upper in reserved):
        usable = pad.size - sum(upper - lower for lower, upper in pad.reserved_byte_ranges)
        raise ValueError(f"scratchpads {pad.name}: {usable} B × {factor} leaves nothing to use")
    update = {
        "size_bytes": size,
        "size_kib": None,
        "size_mib": None,
        "reserved_byte_ranges": tuple(reserved),
    }
    return pad.model_copy(update=update)


def _moved(
    size: Bytes, reserved: Sequence[tuple[Bytes, Bytes]], factor: Fraction, alignment: Bytes
) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the reserved ranges with the gaps before them scaled, and the end as an empty range."""
    place = at = 0
    for lower, upper in (*reserved, (size, size)):
        gap = int((lower - at) * factor)
        place += gap - gap % alignment
        yield place, place + upper - lower
        place += upper - lower
        at = upper
