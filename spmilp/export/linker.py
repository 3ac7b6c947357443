"""``spmilp.ld``: a fragment for GNU ld that keeps the plan's bytes free and names them.

The user's script defines a region for each memory (or an alias, ``REGION_ALIAS``); the fragment
adds a NOLOAD section for each range of addresses that the plan uses, at its fixed address, so that
ld refuses anything else that would lie there, and a symbol for each residency.
"""

from collections.abc import Iterator

from spmilp.export.names import comment, identifier, numbered
from spmilp.export.subject import Subject
from spmilp.machine.machine import Memory
from spmilp.units import Bytes

TITLE = ("spmilp-ld", "1.0")


def linker(subject: Subject) -> dict[str, bytes]:
    """Return the file."""
    memories = zip(subject.problem.machine.memories, subject.used(), strict=True)
    touched = [(memory, used) for memory, used in memories if used]
    lines = ["/*", *(f" * {line}" for line in subject.head(TITLE))]
    lines += [" *", " * Include it after MEMORY. Regions it needs:"]
    for memory, used in touched:
        lines.append(f" *   {region(memory)}: {comment(memory.name)}, {used} B from its origin")
    lines += [" */", "SECTIONS", "{"]
    for memory, used in touched:
        lines += _sections(memory, used)
    lines += ["}", ""]
    for memory, used in touched:
        lines += [*_asserts(memory, used), *_symbols(subject, memory), ""]
    return {"spmilp.ld": "\n".join(lines).encode()}


def region(memory: Memory) -> str:
    """Return the name of a memory's region in the user's script: unique, in capitals."""
    return numbered("SPMILP_MEMORY", memory.index, memory.name).upper()


def _sections(memory: Memory, used: Bytes) -> Iterator[str]:
    """Yield a section for each range of addresses below ``used`` that is not reserved."""
    ends = [0, *(taken.end for taken in memory.reserved)]
    starts = [*(min(taken.start, used) for taken in memory.reserved), used]
    ranges = [pair for pair in zip(ends, starts, strict=True) if pair[0] < pair[1]]
    where = region(memory)
    for number, (start, end) in enumerate(ranges):
        name = f"spmilp_memory{memory.index}_{number}"
        yield f"  .{name} ORIGIN({where}) + {start:#x} (NOLOAD) :"
        yield "  {"
        yield f"    __{name}_start = .;"
        yield f"    . += {end - start:#x};"
        yield f"    __{name}_end = .;"
        yield f"  }} > {where}"


def _asserts(memory: Memory, used: Bytes) -> Iterator[str]:
    where = region(memory)
    yield (
        f'ASSERT({used:#x} <= LENGTH({where}), "spmilp: the plan uses {used} B of {where}, '
        'more than the region has")'
    )
    if memory.alignment > 1:
        yield (
            f"ASSERT((ORIGIN({where}) & {memory.alignment - 1:#x}) == 0, "
            f'"spmilp: {where} does not begin at a multiple of {memory.alignment} B")'
        )


def _symbols(subject: Subject, memory: Memory) -> Iterator[str]:
    prefix = f"__spmilp_{identifier(memory.name) or 'memory'}_m{memory.index}"
    origin = f"ORIGIN({region(memory)})"
    yield f"{prefix}_base = {origin};"
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory.index:
            name = numbered(f"{prefix}_t", tensor.index, tensor.name)
            yield f"{name} = {origin} + {address:#x};"
    for each in subject.plan.residencies:
        if each.memory == memory.index:
            name = numbered(f"{prefix}_r", each.index, subject.name(each))
            says = f"{each.bytes} B, {comment(subject.name(each))}"
            yield f"{name} = {origin} + {each.offset:#x}; /* {says} */"
