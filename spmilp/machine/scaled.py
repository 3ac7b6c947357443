"""A machine with other bandwidth or other scratchpads than its file says, for what-if questions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from spmilp.machine.description import MachineDescription, ScratchpadFields
from spmilp.machine.fields import rate_from
from spmilp.units import Bytes

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
