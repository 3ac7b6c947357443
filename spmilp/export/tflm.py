"""``tflm_plan.bin`` and ``tflm_plan.h``: TensorFlow Lite Micro's offline memory allocation.

The metadata ``OfflineMemoryAllocation`` is an array of little-endian int32: version 1, number of
subgraphs, number of tensors n, then n offsets from the head of the arena, -1 where the runtime
decides (tflite-micro, docs/memory_management.md). An entry here is a buffer of the problem, in
order. TFLM has one arena and aligns tensors to 16 bytes, and a tensor has one offset all the time.
"""

import struct

from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.machine.machine import MemoryKind

TITLE = ("tflm-offline-memory-allocation", "1.0")

ALIGNMENT = 16
LARGEST = 2**31 - 1
AT_RUN_TIME = -1


def tflm(subject: Subject) -> dict[str, bytes]:
    """Return the metadata as bytes and as a C array.

    Raises
    ------
    ExportError
        If the plan uses several scratchpads, or a buffer lies at two offsets, at one that is not a
        multiple of 16, or beyond 2^31.
    """
    offsets = _offsets(subject)
    blob = struct.pack(f"<{3 + len(offsets)}i", 1, 1, len(offsets), *offsets)
    return {"tflm_plan.bin": blob, "tflm_plan.h": _header(subject, offsets).encode()}


def _offsets(subject: Subject) -> list[int]:
    memories = subject.problem.machine.memories
    on_chip = [
        residency
        for residency in subject.plan.residencies
        if memories[residency.memory].kind is not MemoryKind.DRAM
    ]
    used = {residency.memory for residency in on_chip}
    if len(used) > 1:
        raise ExportError(
            f"tflm: the plan uses {len(used)} memories on chip > 1 arena of TensorFlow Lite Micro; "
            "export the plan of a machine with one core, or choose another format"
        )
    offsets = [AT_RUN_TIME] * len(subject.problem.buffers)
    for residency in on_chip:
        if residency.slice is None:
            continue
        part, offset = subject.problem.slices[residency.slice], residency.offset
        buffer, before = subject.problem.buffers[part.buffer], offsets[part.buffer]
        name = f"buffer {buffer.index} ({comment(buffer.name)})"
        if part.extent != buffer.shape:
            raise ExportError(
                f"tflm: a slice of {part.bytes} B of the {buffer.bytes} B of {name} lies alone at "
                f"{offset}; a tensor lies as a whole"
            )
        if before not in (AT_RUN_TIME, offset):
            raise ExportError(
                f"tflm: {name} lies at {before} and later at {offset}, expected one offset"
            )
        if offset % ALIGNMENT:
            raise ExportError(
                f"tflm: {name} lies at {offset} = {offset % ALIGNMENT} modulo {ALIGNMENT}; set "
                f"alignment_bytes: {ALIGNMENT} for the scratchpad and solve again"
            )
        if offset > LARGEST:
            raise ExportError(f"tflm: {name} lies at {offset} > {LARGEST}, the largest offset")
        offsets[part.buffer] = offset
    return offsets


def _header(subject: Subject, offsets: list[int]) -> str:
    lines = ["/*", *(f" * {line}" for line in subject.head(TITLE)), " */"]
    lines += ["#ifndef SPMILP_TFLM_PLAN_H", "#define SPMILP_TFLM_PLAN_H", "", "#include <stdint.h>"]
    lines += ["", f"#define SPMILP_TFLM_PLAN_LENGTH {3 + len(offsets)}", ""]
    lines += ["static const int32_t spmilp_tflm_plan[SPMILP_TFLM_PLAN_LENGTH] = {"]
    lines += ["    1, /* version */", "    1, /* subgraphs */"]
    lines += [f"    {len(offsets)}, /* tensors */"]
    for offset, buffer in zip(offsets, subject.problem.buffers, strict=True):
        lines.append(f"    {offset}, /* {comment(buffer.name)} */")
    return "\n".join([*lines, "};", "", "#endif", ""])
