"""Parts of a machine that are alike, and are changed together."""

from spmilp.machine.machine import Engine, Link, Machine, Memory, MemoryKind
from spmilp.units import EngineIdx, LinkIdx, MemoryIdx


def alike_memories(machine: Machine, memory: MemoryIdx) -> list[Memory]:
    """Return the memories of the same kind, size and reserved bytes as one, which is among them."""
    like = machine.memories[memory]
    return [
        each
        for each in machine.memories
        if (each.kind, each.size, each.reserved) == (like.kind, like.size, like.reserved)
    ]


def alike_engines(machine: Machine, engine: EngineIdx) -> list[Engine]:
    """Return the engines with the same channels and rate that belong to memories of one kind."""

    def key(each: Engine) -> tuple[object, ...]:
        kind = None if each.owner is None else machine.memories[each.owner].kind
        return each.channels, each.rate, each.setup, each.loads, each.stores, kind

    like = key(machine.engines[engine])
    return [each for each in machine.engines if key(each) == like]


def alike_links(machine: Machine, link: LinkIdx) -> list[Link]:
    """Return the links of the same rate and latency that also come from a DRAM, or lead to one."""
    drams = {each.name for each in machine.memories if each.kind is MemoryKind.DRAM}

    def key(each: Link) -> tuple[object, ...]:
        return each.rate, each.latency, each.source in drams, each.target in drams

    like = key(machine.links[link])
    return [each for each in machine.links if key(each) == like]


def of_all(name: str, count: int, kind: str) -> str:
    """Return the name of a part, or of all that are like it."""
    return name if count == 1 else f"each of {count} {kind} like {name}"
