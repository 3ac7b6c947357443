"""The report is one page that holds everything and asks for nothing."""

import gzip
import json
import re
from base64 import b64decode
from typing import Any

from report.duo import duo_problem
from report.evil import duo_page, with_evil_names
from spmilp.report.page import Page


def packed(page: Page) -> dict[str, Any]:
    (text,) = re.findall(r'id="plan">([^<]*)</script>', page.html)
    return dict(json.loads(gzip.decompress(b64decode(text))))


def test_the_page_asks_for_nothing() -> None:
    html = duo_page().html
    assert "default-src 'none'" in html
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|<link|<iframe", html)
    assert re.findall(r"<[a-z]+ [^>]*\b(?:src|href)=[\"'](?!#)", html) == []


def test_names_are_never_part_of_the_markup() -> None:
    html = duo_page(with_evil_names(duo_problem())).html
    assert "hacked" not in html
    assert html.count("<script") == 2
    assert "{{plan}} {{script}} $&amp; \\1 &amp;lt;b&amp;gt;" in html
    assert "innerHTML" not in html


def test_the_page_has_tasks_transfers_causes_and_the_chain() -> None:
    shown = packed(duo_page())
    assert shown["tasks"]["start"] == [10, 40]
    assert shown["transfers"]["route"] == [[], [], []]
    assert shown["chain"] == [2, 0, 3, 1, 4]
    assert shown["residencies"]["below"] == [-1, -1, -1, -1, 3, -1]
    assert shown["words"]["parts"][0] == "computing"
