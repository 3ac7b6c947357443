"""``spmilp.ld``: a fragment for GNU ld that keeps the plan's bytes free and names them.

The user's script defines a region for each memory (or an alias, ``REGION_ALIAS``); the fragment
adds a NOLOAD section for each range of addresses that the plan uses, at its fixed address, so that
ld refuses anything else that would lie there, and a symbol for each residency.
"""

from collections.abc import Iterator

from spmilp.export.names import comment, identifier, numbered
from spmilp.export.subject import Subject
from spmilp.machine.machine import Memory
from spmilp.plan.plan import Residency
from spmilp.units import Bytes

NAME, VERSION = "spmilp-ld", "1.0"


def linker(subject: Subject) -> dict[str, bytes]:
    """Return the file."""
    lines = ["/*", *(f" * {line}" for line in subject.stamp.lines(NAME, VERSION))]
    lines += [" *", " * Include it after MEMORY. Regions it needs:"]
    memories = subject.problem.machine.memories
    used = subject.used()
    touched = [memory for memory in memories if used[memory.index]]
    lines += [
        f" *   {region(memory)}: {comment(memory.name)}, {used[memory.index]} B from its origin"
        for memory in touched
    ]
    lines += [" */", "SECTIONS", "{"]
    for memory in touched:
        lines += [f"  {line}" for line in _sections(memory, used[memory.index])]
    lines += ["}", ""]
    for memory in touched:
        lines += _asserts(memory, used[memory.index])
        lines += _symbols(subject, memory)
        lines.append("")
    return {"spmilp.ld": "\n".join(lines).encode()}


def region(memory: Memory) -> str:
    """Return the name of a memory's region in the user's script: unique, in capitals."""
    return numbered("SPMILP_MEMORY", memory.index, memory.name).upper()


def _sections(memory: Memory, used: Bytes) -> Iterator[str]:
    where = region(memory)
    for number, (start, end) in enumerate(_ranges(memory, used)):
        name = f"spmilp_memory{memory.index}_{number}"
        yield f".{name} ORIGIN({where}) + {start:#x} (NOLOAD) :"
        yield "{"
        yield f"  __{name}_start = .;"
        yield f"  . += {end - start:#x};"
        yield f"  __{name}_end = .;"
        yield f"}} > {where}"


def _ranges(memory: Memory, used: Bytes) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the addresses below ``used`` that are not reserved."""
    start = 0
    for taken in memory.reserved:
        if start < min(taken.start, used):
            yield start, min(taken.start, used)
        start = taken.end
    if start < used:
        yield start, used


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
    yield f"{prefix}_base = ORIGIN({region(memory)});"
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory.index:
            name = numbered(f"{prefix}_t", tensor.index, tensor.name)
            yield f"{name} = ORIGIN({region(memory)}) + {address:#x};"
    yield from (
        _symbol(subject, prefix, memory, residency)
        for residency in subject.plan.residencies
        if residency.memory == memory.index
    )


def _symbol(subject: Subject, prefix: str, memory: Memory, residency: Residency) -> str:
    name = numbered(f"{prefix}_r", residency.index, subject.name(residency))
    return (
        f"{name} = ORIGIN({region(memory)}) + {residency.offset:#x}; "
        f"/* {residency.bytes} B, {comment(subject.name(residency))} */"
    )
