"""A machine with a few numbers set anew, for what-if questions; where they come from stays told."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from spmilp.amounts import byte_count
from spmilp.machine.description import MachineDescription
from spmilp.machine.fields import rate_from, what_is_wrong
from spmilp.machine.provenance import Provenance

SIZES = ("size_bytes", "size_kib", "size_mib")


def numbers_of(changes: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the numbers that are meant; rates as text.

    Parameters
    ----------
    changes
        Some of ``spm``, ``dma_channels``, ``dma_rate``, ``dram_rate``, as
        :meth:`~spmilp.machine.read.MachineFile.replace` has them.

    Raises
    ------
    ValueError
        If a value is nothing of its kind; the message names field and value.
    """
    numbers = {}
    for name, value in changes.items():
        try:
            numbers[name] = _READERS[name](value)
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
        places = list(_PLACES[name](fields))
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
        raise ValueError(f"{label_of(numbers)}: {what_is_wrong(error)}") from error


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
