"""Runs DMA descriptors as their controllers do: word by word, on memories of bytes."""

from collections.abc import Callable, Sequence

import numpy as np

Rows = Sequence[tuple[int, ...]]
Memories = Sequence[np.ndarray]


def signed(value: int, width: int) -> int:
    """Return a number of ``width`` bits as a signed one."""
    return value - (1 << width) if value >> (width - 1) else value


def mchan(name: str, bits: int) -> Callable[[dict[str, Rows], Memories], None]:
    """Return the runner of a version."""

    def run(tables: dict[str, Rows], memories: Memories) -> None:
        for row, info in zip(tables[name], tables["info"], strict=True):
            count, command, local, external, *arguments = row
            words = arguments[: count - 3]
            length, flags = command & ((1 << bits) - 1), command >> bits
            loads, increment = flags & 1, flags >> 1 & 1
            assert increment
            sides = []
            for is_2d in (flags >> 2 & 1, flags >> 6 & 1):
                size, stride = length, 0
                if is_2d:
                    size, stride = words.pop(0), 0
                    if bits == 16:
                        size, stride = size & 0xFFFF, size >> 16
                    else:
                        stride = words.pop(0)
                sides.append([(at // size) * stride + at % size for at in range(length)])
            assert not words
            there, here = (np.array(side, int) for side in sides)
            if loads:
                memories[info[4]][local + here] = memories[info[3]][external + there]
            else:
                memories[info[4]][external + there] = memories[info[3]][local + here]

    return run


def epiphany(tables: dict[str, Rows], memories: Memories) -> None:
    """Run inner and outer loops; the outer stride takes the place of the last inner one."""
    offset = 0
    for row, info in zip(tables["epiphany"], tables["info"], strict=True):
        config, inner, count, outer, source, target = row
        assert config & 3 == 3
        assert bool(config & 4) != bool(info[5])
        assert config >> 16 == (0 if info[5] else offset + 24)
        offset = 0 if info[5] else offset + 24
        size = 1 << (config >> 5 & 3)
        items, rows = count & 0xFFFF, count >> 16
        for _ in range(rows):
            for item in range(items):
                assert source % size == target % size == 0
                memories[info[4]][target : target + size] = memories[info[3]][
                    source : source + size
                ]
                stride = outer if item == items - 1 else inner
                source += signed(stride & 0xFFFF, 16)
                target += signed(stride >> 16, 16)
