"""Tables and pools as arrays of C, and what initialises a ``struct spmilp_tables`` with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spmilp.export.actions.kept import Kept
from spmilp.export.c_text import (
    SECTION,
    array,
    image_declaration,
    image_is_in_c,
    image_name,
    numbers,
)
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.export.tables.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class CTables:
    """Arrays of one plan.

    Parameters
    ----------
    prefix, kind
        Their names begin with both; that of the image with the prefix.
    image
        ``None`` where it is not known.
    lists
        How many command lists there are, where no table says so.
    """

    prefix: str
    kind: str = "plan"
    tables: Sequence[Table]
    words: Sequence[int]
    texts: bytes
    image: bytes | None
    lists: int | None = None

    @property
    def start(self) -> str:
        """Beginning of the names."""
        return f"{self.prefix}_{self.kind}"

    def declarations(self) -> list[str]:
        """Return a declaration for each array, that of the image too where it is in C."""
        found = [f"extern {each};" for each in (*map(self._array, self.tables), *self._pools())]
        if self.image is not None and image_is_in_c(self.image):
            found.append(f"extern {image_declaration(self.prefix, self.image)};")
        return found

    def definitions(self) -> Iterator[str]:
        """Yield the definitions of all but the image."""
        for table in self.tables:
            yield f"/* {', '.join(column.name for column in table.layout.columns)} */"
            yield from (*array(f"{SECTION} {self._array(table)}", table), "")
        words, texts = self._pools()
        yield from (*numbers(f"{SECTION} {words}", self.words, "i32"), "")
        yield from (*numbers(f"{SECTION} {texts}", self.texts, None), "")

    def initialiser(self) -> Iterator[str]:
        """Yield a macro that initialises a ``struct spmilp_tables``; what is not there is zero."""
        start = self.start
        content = self.image or b""
        is_in_c = self.image is not None and image_is_in_c(content)
        image = image_name(self.prefix) if is_in_c else "(const uint8_t *)0"
        yield f"#define {start.upper()}_TABLES \\"
        yield "    { \\"
        for table in self.tables:
            name, rows = table.layout.table, len(table.rows)
            yield f"        .{name} = {start}_{name}, .{name}_count = {rows}U, \\"
        if self.lists is not None:
            yield f"        .lists_count = {self.lists}U, \\"
        for pool, size in (("words", len(self.words)), ("texts", len(self.texts))):
            yield f"        .{pool} = {start}_{pool}, .{pool}_count = {size}U, \\"
        yield f"        .image = {image}, .image_count = UINT64_C({len(content)}) \\"
        yield "    }"

    def _array(self, table: Table) -> str:
        layout, rows = table.layout, max(1, len(table.rows))
        return f"const struct spmilp_{layout.struct} {self.start}_{layout.table}[{rows}U]"

    def _pools(self) -> tuple[str, str]:
        words, texts = max(1, len(self.words)), max(1, len(self.texts))
        return (
            f"const int32_t {self.start}_words[{words}U]",
            f"const uint8_t {self.start}_texts[{texts}U]",
        )


def kept_in_c(subject: Subject, kept: Kept, kind: str) -> CTables:
    """Return the arrays of what stays a table."""
    return CTables(
        prefix=subject.prefix,
        kind=kind,
        tables=kept.tables(),
        words=kept.words,
        texts=kept.texts,
        image=kept.image,
        lists=len(subject.lists.lists),
    )


def kept_sizes(subject: Subject, kept: Kept, kind: str) -> Iterator[str]:
    """Yield macros of the sizes of a program."""
    line = f"#define {subject.prefix.upper()}_{kind.upper()}"
    yield f"{line}_IMAGE_BYTES UINT64_C({len(kept.image)})"
    yield f"{line}_EVENTS {subject.lists.events}U"
    yield f"{line}_LISTS {len(subject.lists.lists)}U"
    for memory, used in zip(subject.problem.machine.memories, kept.used, strict=True):
        name = f"{line}_MEMORY{memory.index}_USED_BYTES"
        yield f"{name} UINT64_C({used}) /* {comment(memory.name)} */"
