"""What the page on packing shows is what happens."""

import re
from pathlib import Path

from tests.acceptance.doors import Run

PAGE = (Path(__file__).parents[2] / "docs" / "packing.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_field_of_the_json_is_on_the_page(run: Run, tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text(blocks("csv")[0])
    fields = run("pack", "buffers.csv", "--minimise", "--json").json
    assert [name for name in fields if f"`{name}`" not in PAGE] == []


def test_every_option_on_the_page_exists(run: Run) -> None:
    named = set(re.findall(r"(--[a-z-]+[a-z])", PAGE))
    known = run("pack", "--help").out
    assert [option for option in sorted(named) if option not in known] == []
