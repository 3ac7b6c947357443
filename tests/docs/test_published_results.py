"""The page of published results shows the kept rows, and a new measurement replaces its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.published import __main__ as script
from benchmarks.published.page import page_of
from benchmarks.published.rows import NAMES, KeptRow, Row, Source, find_source, read_kept

PAGE = Path(__file__).parents[2] / "benchmarks" / "notes" / "published_results.md"


def test_the_page_shows_the_kept_rows_of_every_source() -> None:
    kept = read_kept()

    assert {one.source for one in kept} == set(NAMES)
    assert PAGE.read_text(encoding="utf-8") == page_of(kept)


def test_every_difference_from_a_published_figure_has_a_reason() -> None:
    for one in read_kept():
        has_figure = not one.row.published.startswith("none")
        assert one.row.reason or not has_figure or one.row.published in one.row.ours, one.row


def test_sources_say_where_their_figures_are_from_and_how_ours_were_measured() -> None:
    sources = [find_source(name) for name in NAMES]

    assert all(one.citation and one.setting for one in sources)
    assert len({one.title for one in sources}) == len(NAMES)


def made_again(data: Path) -> Iterator[Row]:
    yield Row(quantity="a new figure", published="none", ours="3")


def test_a_source_that_is_measured_again_loses_its_old_rows_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Source(title="COSMA", citation="c", setting="s", rows=made_again)
    monkeypatch.setattr(script, "find_source", lambda name: new)
    kept, page = tmp_path / "rows.csv", tmp_path / "page.md"
    script.write_kept(read_kept(), kept)

    script.main(["--only", "cosma", "-o", str(page)], kept)

    assert [one.row.quantity for one in read_kept(kept) if one.source == "cosma"] == [
        "a new figure"
    ]
    assert others(read_kept(kept)) == others(read_kept())
    assert "| a new figure | none | 3 |  |" in page.read_text(encoding="utf-8")


def others(kept: tuple[KeptRow, ...]) -> list[KeptRow]:
    return [one for one in kept if one.source != "cosma"]
