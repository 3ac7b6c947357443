"""The files of the player: the same sources for every plan, and the program of one plan."""

from spmilp.export.packed.packed import packed_plan
from spmilp.export.player.kernels import INPUTS, LEAST_INPUTS, require_kernels
from spmilp.export.player.program import Kind, Program
from spmilp.export.subject import Profile, Subject
from spmilp.export.tables.all_tables import all_tables


def player(subject: Subject) -> dict[str, bytes]:
    """Return sources, a makefile and a linker script; the tables are those of the C export.

    Raises
    ------
    ExportError
        If a kernel cannot compute an operator, or the tables cannot be made.
    """
    require_kernels(subject)
    prefix = subject.prefix
    return Program(
        subject=subject,
        kind=Kind.BITS if subject.profile is Profile.RELEASE else Kind.TABLES,
        plan=(f"{prefix}_plan.c",),
        header=f"{prefix}_plan.h",
        sizes=f"{prefix.upper()}_PLAN",
        inputs=_most_inputs(subject),
        makefile="player.mk",
    ).files()


def _most_inputs(subject: Subject) -> int:
    """Return how many inputs kernels must be able to take."""
    if subject.profile is Profile.RELEASE:
        return max(LEAST_INPUTS, packed_plan(subject).inputs)
    return max(INPUTS, *(row[2] for row in all_tables(subject).of("steps").rows))
