"""Runs DMA descriptors as their controllers do: word by word, on memories of bytes."""

from collections.abc import Callable, Sequence

import numpy as np

Rows = Sequence[tuple[int, ...]]
Memories = Sequence[np.ndarray]


def signed(value: int, width: int) -> int:
    """Return a number of ``width`` bits as a signed one."""
    return value - (1 << width) if value >> (width - 1) else value


def axi_dma_sg(tables: dict[str, Rows], memories: Memories) -> None:
    """Run the two rings of each channel; bytes of a packet flow through the stream."""
    infos = tables["info"]
    stream, open_packet = bytearray(), False
    for number, (read, write, info) in enumerate(
        zip(tables["axi_dma_mm2s"], tables["axi_dma_s2mm"], infos, strict=True)
    ):
        channel = [i for i, other in enumerate(infos) if other[1:3] == info[1:3]]
        follower = channel[(channel.index(number) + 1) % len(channel)]
        assert read[0] == write[0] == 64 * follower
        assert len(read) * 4 == 64
        first, last, size = read[6] >> 27 & 1, read[6] >> 26 & 1, read[6] & (2**26 - 1)
        assert first != open_packet
        open_packet = not last
        assert last == info[5]
        assert write[6] == size
        source, target = memories[info[3]], memories[info[4]]
        start, end = read[2] | read[3] << 32, write[2] | write[3] << 32
        stream += source[start : start + size].tobytes()
        target[end : end + size] = list(stream[:size])
        del stream[:size]


def edma_tcd(tables: dict[str, Rows], memories: Memories) -> None:
    """Run major and minor loops, access by access."""
    for number, (row, info) in enumerate(zip(tables["edma_tcd"], tables["info"], strict=True)):
        saddr, attr_soff, nbytes, slast, daddr, citer_doff, dlast, biter_csr = row
        assert slast == 0
        size = 1 << (attr_soff >> 24 & 7)
        assert attr_soff >> 16 & 7 == attr_soff >> 24 & 7
        step, turns = signed(attr_soff & 0xFFFF, 16), citer_doff >> 16
        assert turns == biter_csr >> 16
        assert turns < 2**15
        csr = biter_csr & 0xFFFF
        assert bool(csr & 1 << 4) != bool(info[5])
        assert dlast == (0 if info[5] else 32 * (number + 1))
        source_offset, target_offset, minor = nbytes >> 31, nbytes >> 30 & 1, nbytes & (2**30 - 1)
        jump = 0
        if source_offset or target_offset:
            jump, minor = signed(minor >> 10, 20), minor & 1023
        for _ in range(turns):
            assert minor % size == saddr % size == daddr % size == 0
            for _ in range(minor // size):
                memories[info[4]][daddr : daddr + size] = memories[info[3]][saddr : saddr + size]
                saddr, daddr = saddr + step, daddr + signed(citer_doff & 0xFFFF, 16)
            saddr, daddr = saddr + jump * source_offset, daddr + jump * target_offset


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


def aie_addresses(row: tuple[int, ...]) -> list[int]:
    """Return the addresses of the words that a buffer descriptor goes through."""
    base, length = row[0] >> 14, row[0] & (2**14 - 1)
    steps = ((row[2] & 0x1FFF) + 1, (row[2] >> 13 & 0x1FFF) + 1, (row[3] & 0x1FFF) + 1)
    wraps = (row[3] >> 13 & 0xFF or 1 << 30, row[3] >> 21 & 0xFF or 1 << 30)
    found = []
    for number in range(length):
        first, rest = number % wraps[0], number // wraps[0]
        second, third = rest % wraps[1], rest // wraps[1]
        found.append(4 * (base + first * steps[0] + second * steps[1] + third * steps[2]))
    return found
