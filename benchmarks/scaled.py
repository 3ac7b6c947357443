"""Machines with other DRAM rates and scratchpads than their files, for rows of suites."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spmilp.formats import converted
from spmilp.machine.description import MachineDescription, ScratchpadFields
from spmilp.machine.read import MachineFile, load_machine
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """By what to multiply; 1 leaves everything as it is.

    Parameters
    ----------
    dram
        For the rate of each port of each DRAM.
    spm
        For the bytes of each scratchpad that plans may use. Reserved ranges keep their sizes and
        their order.
    """

    dram: Fraction = Fraction(1)
    spm: Fraction = Fraction(1)

    @property
    def label(self) -> str:
        """What a scaled machine's name has at its end, as ``-dram0.5-spm0.25``; empty for 1."""
        parts = (("dram", self.dram), ("spm", self.spm))
        return "".join(f"-{name}{float(factor):g}" for name, factor in parts if factor != 1)


SAME = Scale()


def load_scaled(name: str, scale: Scale) -> MachineFile:
    """Return a machine with other rates and sizes."""
    file = load_machine(name)
    if scale == SAME:
        return file
    given = converted(file.content, MachineDescription)
    fields: dict[str, Any] = {}
    for dram in given.dram:
        if dram.rate is not None and scale.dram != 1:
            fields[f"dram.{dram.name}.rate_bytes_per_cycle"] = dram.rate * scale.dram
    for pad in given.scratchpads:
        if scale.spm != 1:
            size, reserved = _resized(pad, scale.spm)
            fields[f"scratchpads.{pad.name}.size_bytes"] = size
            fields[f"scratchpads.{pad.name}.reserved_byte_ranges"] = reserved
    return file.replace(fields=fields, name=f"{file.machine.name}{scale.label}")


def _resized(pad: ScratchpadFields, factor: Fraction) -> tuple[Bytes, list[list[Bytes]]]:
    """Return the size and the reserved ranges, the gaps before and behind them scaled."""
    size, place, at, moved = pad.size or 0, 0, 0, []
    for lower, upper in (*pad.reserved, (size, size)):
        gap = int((lower - at) * factor)
        place += gap - gap % pad.alignment
        moved.append([place, place + upper - lower])
        place, at = moved[-1][1], upper
    return place, moved[:-1]
