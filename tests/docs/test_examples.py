"""What README and docs show is what their commands print."""

from pathlib import Path

import pytest

from tests.docs.scripts import script

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


EXAMPLES = script(ROOT / "docs" / "examples.py")
CASES = {
    page: list(EXAMPLES.examples((ROOT / page).read_text(encoding="utf-8")))
    for page in EXAMPLES.PAGES
}


def test_every_page_has_examples() -> None:
    assert all(CASES.values())
    shown = [one for examples in CASES.values() for one in examples if one.printed is not None]
    assert len(shown) >= 8


@pytest.mark.full
@pytest.mark.parametrize("page", CASES)
def test_examples_run_and_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = EXAMPLES.Session(tmp_path)
    if all(example.printed is None for example in CASES[page]):
        monkeypatch.setattr("spmilp.options.SECONDS", 20.0)  # instead of a minute
    for example in CASES[page]:
        printed = session.printed_by(example)
        if example.printed is not None:
            expected = EXAMPLES.without_times(example.printed)
            assert EXAMPLES.without_times(printed) == expected, example.content


def test_the_first_screen_shows_the_kept_answer_of_the_first_command() -> None:
    printed = (ROOT / "docs" / "example" / "printed.txt").read_text(encoding="utf-8")
    assert f"The first one ends with\n\n```text\n{printed}```" in README


@pytest.mark.full
def test_the_kept_answer_is_what_is_printed_of_the_kept_plan() -> None:
    printed = (ROOT / "docs" / "example" / "printed.txt").read_text(encoding="utf-8")
    assert printed == EXAMPLES.answer_of_the_first_command()
