"""The files of the C export."""

from spmilp.export.c.defines import names_header
from spmilp.export.c.plan import image_declaration, plan_header, plan_source
from spmilp.export.c.text import head, numbers
from spmilp.export.c.types import types_header
from spmilp.export.subject import Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Tables

LARGEST_IMAGE_IN_C = 4 << 20
"""Bytes of constants that are written as an array of C too; compilers take long over more."""


def c_files(subject: Subject) -> dict[str, bytes]:
    """Return headers and sources, and the constants' bytes where the model is known.

    Raises
    ------
    ExportError
        If a number does not fit its field, or an operator cannot be expressed.
    """
    tables = all_tables(subject)
    prefix = subject.prefix
    has_image = subject.network is not None
    image_in_c = has_image and len(tables.image) <= LARGEST_IMAGE_IN_C
    files = {
        "spmilp_types.h": types_header(subject.stamp.tool).encode(),
        f"{prefix}_plan.h": plan_header(subject, tables, image_in_c=image_in_c).encode(),
        f"{prefix}_plan.c": plan_source(subject, tables).encode(),
        f"{prefix}_names.h": names_header(subject).encode(),
    }
    if image_in_c:
        files[f"{prefix}_image.c"] = _image_source(subject, tables).encode()
    if has_image:
        files[f"{prefix}_image.bin"] = tables.image
    return files


def _image_source(subject: Subject, tables: Tables) -> str:
    lines = head(subject.stamp, "Bytes of the constants; the table of segments says where they go.")
    lines += ["", f'#include "{subject.prefix}_plan.h"', ""]
    lines += ["#ifndef SPMILP_TABLE", "#define SPMILP_TABLE", "#endif", ""]
    lines += numbers(f"SPMILP_TABLE {image_declaration(subject, tables)}", tables.image, None)
    return "\n".join([*lines, ""])
