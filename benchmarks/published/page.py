"""The page of published results, from the kept rows."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.published.rows import NAMES, KeptRow, Row, find_source

HEAD = """# Published results

Figures that publications print, and the same quantity measured here, source by source. Where they
differ the last column says why; "none" stands where a publication gives no figure for it, or none
that we could read.

The page is made by `python -m benchmarks.published`; each section names the command that measures
it again, and the revision at which that was done. What each policy takes from its source is on
[another page](policies.md).
"""
COLUMNS = "| quantity | published | ours | why they differ |\n|---|--:|--:|---|\n"


def page_of(kept: Sequence[KeptRow]) -> str:
    """Return the page in Markdown; sources without rows have no section."""
    sections = (_section(name, [one for one in kept if one.source == name]) for name in NAMES)
    return "\n".join((HEAD, *filter(None, sections)))


def _section(name: str, kept: Sequence[KeptRow]) -> str:
    if not kept:
        return ""
    source = find_source(name)
    revisions = ", ".join(dict.fromkeys(one.revision for one in kept))
    table = COLUMNS + "".join(_lines(one.row for one in kept))
    command = f"`python -m benchmarks.published --only {name}`, at revision {revisions}:"
    paragraphs = (f"## {source.title}", source.citation, source.setting, command, table)
    return "\n\n".join(paragraphs)


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield f"| {row.quantity} | {row.published} | {row.ours} | {row.reason} |\n"
