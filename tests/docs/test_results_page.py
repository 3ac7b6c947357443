"""The page of results is what its script writes from the kept figures."""

from benchmarks.results.__main__ import PAGE, page_of


def test_the_page_shows_the_kept_figures() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of()
