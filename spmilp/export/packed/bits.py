"""A string of bits: fields of known width, and numbers that say how wide they are."""

from spmilp.export.errors import ExportError

WIDTH_BITS = 5

CLASS_BITS, SHORT, LONG = 2, 3, 6
"""Numbers: 0; those of ``SHORT`` bits from 1 on; those of ``LONG`` bits behind; with a width."""
_FIRST_LONG = 1 + (1 << SHORT)
_FIRST_WIDE = _FIRST_LONG + (1 << LONG)

READ_AT_ONCE = 4
"""Bytes that the sources read from any byte on that has bits."""

LARGEST = 2**31 - 1
"""The largest number that the width before it can express."""


class Bits:
    """Bits in the order in which they are read, the lowest of each field first."""

    def __init__(self) -> None:
        self._whole = bytearray()
        self._rest, self._length = 0, 0

    @property
    def at(self) -> int:
        """Position of the next bit."""
        return 8 * len(self._whole) + self._length

    def put(self, value: int, width: int) -> None:
        """Append a field of ``width`` bits.

        Raises
        ------
        ValueError
            If the value does not fit.
        """
        if not 0 <= value < 1 << width:
            raise ValueError(f"{value} does not fit {width} bits")
        self._rest |= value << self._length
        self._length += width
        while self._length >= 8:
            self._whole.append(self._rest & 255)
            self._rest >>= 8
            self._length -= 8

    def number(self, value: int) -> None:
        """Append a number: its class, and what is left of it."""
        if not 0 <= value <= LARGEST:
            raise ExportError(
                f"release profile: {value} is outside [0, {LARGEST}] of its numbers; "
                "export with --profile debug"
            )
        class_ = _class_of(value)
        self.put(class_, CLASS_BITS)
        if class_ == 1:
            self.put(value - 1, SHORT)
        elif class_ == 2:
            self.put(value - _FIRST_LONG, LONG)
        elif class_ == 3:
            width = value.bit_length()
            self.put(width, WIDTH_BITS)
            self.put(value - (1 << (width - 1)), width - 1)

    def append(self, other: "Bits") -> None:
        """Append all bits of another string."""
        for byte in other._whole:
            self.put(byte, 8)
        self.put(other._rest, other._length)

    def content(self) -> bytes:
        """Return all bits as bytes, with zeros behind the last: C reads four bytes at once.

        Even behind the last bit: a field may have no bits.
        """
        rest = bytes([self._rest]) if self._length else b""
        return bytes(self._whole) + rest + bytes(READ_AT_ONCE)


def _class_of(value: int) -> int:
    return (value > 0) + (value >= _FIRST_LONG) + (value >= _FIRST_WIDE)


def number_bits(value: int) -> int:
    """Return how many bits a number takes."""
    rest = (0, SHORT, LONG, WIDTH_BITS + value.bit_length() - 1)
    return CLASS_BITS + rest[_class_of(value)]
