"""Prefix codes: frequent symbols take few bits (Huffman, Proc. IRE 40, 1952; canonical form)."""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from spmilp.export.errors import ExportError
from spmilp.export.packed.bits import WIDTH_BITS, Bits

LONGEST = 24
"""Bits that the sources read at once."""


class PrefixCode:
    """A code for some symbols, made for how often each of them is written.

    Codes of one length follow each other in the order of their symbols, the shorter ones come
    first; so lengths and symbols say it all.

    Raises
    ------
    ExportError
        If a code is too long, which takes more than 120,000 symbols.
    """

    def __init__(self, written: Iterable[int]) -> None:
        lengths = _lengths(Counter(written))
        longest = max(lengths.values(), default=0)
        if longest > LONGEST:
            raise ExportError(
                f"release profile: a prefix code of {longest} bits > {LONGEST}, the most that are "
                "read at once; export with --profile debug"
            )
        self._symbols = sorted(lengths, key=lambda symbol: (lengths[symbol], symbol))
        self._counts = [0] * (longest + 1)
        for length in lengths.values():
            self._counts[length] += 1
        self._codes: dict[int, tuple[int, int]] = {}
        code, before = 0, 0
        for symbol in self._symbols:
            length = lengths[symbol]
            code <<= length - before
            self._codes[symbol] = (code, length)
            code, before = code + 1, length

    def put_table(self, bits: Bits) -> None:
        """Append width of a symbol, longest code, how many there are of each length, symbols."""
        width = max(self._symbols, default=0).bit_length()
        count_bits = len(self._symbols).bit_length()
        for value in (width, count_bits, len(self._counts) - 1):
            bits.put(value, WIDTH_BITS)
        for count in self._counts:
            bits.put(count, count_bits)
        for symbol in self._symbols:
            bits.put(symbol, width)

    def put(self, bits: Bits, symbol: int) -> None:
        """Append a symbol, the highest bit of its code first."""
        code, length = self._codes[symbol]
        for place in reversed(range(length)):
            bits.put(code >> place & 1, 1)


def _lengths(counts: Counter[int]) -> dict[int, int]:
    """Return the length of each symbol's code; 0 for one that is alone."""
    waiting: list[tuple[int, int, tuple[int, ...]]] = [
        (count, symbol, (symbol,)) for symbol, count in counts.items()
    ]
    heapify(waiting)
    lengths = dict.fromkeys(counts, 0)
    while len(waiting) > 1:
        one, other = heappop(waiting), heappop(waiting)
        for symbol in (*one[2], *other[2]):
            lengths[symbol] += 1
        heappush(waiting, (one[0] + other[0], min(one[1], other[1]), one[2] + other[2]))
    return lengths
