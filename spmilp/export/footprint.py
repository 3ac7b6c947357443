"""What a plan takes in a program: constants and tables in flash, bytes of each memory."""

from dataclasses import dataclass

from spmilp.export.packed.packed import packed_plan
from spmilp.export.subject import Profile, Subject
from spmilp.export.tables import layouts
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Table
from spmilp.units import Bytes

_POINTER, _PACKED_HEAD, _TABLES_HEAD = 4, 64, 8 * (len(layouts.LAYOUTS) + 2) + 16
"""Bytes on a processor of 32 bits: of the structs ``spmilp_packed`` and ``spmilp_tables``."""


MOST_NAMED = 2
"""Memories that a line of text names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes that a plan takes in a program, besides its code.

    Parameters
    ----------
    constants
        Weights and other constants, in flash.
    tables
        Everything else that is constant.
    memories
        ``(name, bytes)`` of each memory that the plan uses; constants that stay in flash left out.
    workspace
        For packed operands, for each core that runs at the same time as others.
    state
        Events, and where each list is.
    alignment
        The largest that a base address must have.
    """

    profile: Profile
    constants: Bytes
    tables: Bytes
    memories: tuple[tuple[str, Bytes], ...]
    workspace: Bytes
    state: Bytes
    alignment: Bytes

    def fields(self) -> dict[str, object]:
        """Return the same for JSON."""
        return {
            "profile": self.profile.value,
            "flash": {"constants": self.constants, "tables": self.tables},
            "ram": dict(self.memories),
            "workspace": self.workspace,
            "state": self.state,
            "alignment": self.alignment,
        }

    def lines(self) -> tuple[str, ...]:
        """Return the same as text for people; names stand as they are.

        Of many memories the first ones and the fullest of the others.
        """
        named = MOST_NAMED if len(self.memories) > MOST_NAMED + 1 else len(self.memories)
        ram = ", ".join(f"{name} {used:,} B" for name, used in self.memories[:named])
        others = self.memories[named:]
        if others:
            fullest, most = max(others, key=lambda memory: memory[1])
            ram += f", {len(others)} more with up to {most:,} B ({fullest})"
        return (
            f"flash: {self.constants:,} B of constants, {self.tables:,} B of tables "
            f"({self.profile.value})",
            f"RAM: {ram}",
            f"besides: {self.workspace:,} B of workspace for each core, {self.state:,} B for "
            f"events and lists; alignment {self.alignment} B",
        )


def footprint(subject: Subject) -> Footprint:
    """Return what the tables of the subject's profile take.

    Raises
    ------
    ExportError
        If the tables cannot be made.
    """
    tables = all_tables(subject)
    events, lists = subject.lists.events, len(subject.lists.lists)
    if subject.profile is Profile.RELEASE:
        plan = packed_plan(subject)
        kept = plan.kept
        own_tables = (
            *(len(plan.bits), _POINTER * len(kept.words), len(kept.texts)),
            *map(_bytes_in_c, kept.tables()),
            *(_PACKED_HEAD, _TABLES_HEAD),
        )
        used, workspace, words = kept.used, kept.workspace + plan.numbers, 3
    else:
        own_tables = (
            *map(_bytes_in_c, tables.tables),
            *(_POINTER * len(tables.words), len(tables.texts), _TABLES_HEAD),
        )
        used, workspace, words = tuple(subject.used()), tables.of("summary").rows[0][1], 1
    memories = subject.problem.machine.memories
    return Footprint(
        profile=subject.profile,
        constants=len(tables.image),
        tables=sum(own_tables),
        memories=tuple(
            (memory.name, size) for memory, size in zip(memories, used, strict=True) if size
        ),
        workspace=workspace,
        state=_POINTER * (events + 1 + words * lists + 1),
        alignment=max(memory.alignment for memory in memories),
    )


def _bytes_in_c(table: Table) -> Bytes:
    """Return the bytes of an array; C has no empty ones."""
    return table.layout.stride * max(1, len(table.rows))
