"""The report as Chromium draws it: hovering, clicking, keys, printing, and how soon it is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.generated import generated_problem
from report.browser import Browser, chromium, running
from report.duo import duo_plan, duo_problem
from report.evil import EVIL, duo_page, with_evil_names
from spmilp.pipeline import solve
from spmilp.result import Result, read

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running(chromium(), tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Result:
    result = solve(generated_problem(200, 8), solver="greedy:locality/round_robin")
    folder = tmp_path_factory.mktemp("plan")
    result.save(folder)
    return read(folder)


@pytest.fixture
def opened(browser: Browser, planned: Result, tmp_path: Path) -> Browser:
    planned.report(tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    return browser


def middle(browser: Browser, activity: int) -> tuple[float, float]:
    """Return where the bar of a task or transfer is on the screen."""
    x, y = browser.run(
        f"(() => {{ const timeline = report.timeline, box = timeline.boxOf({activity});"
        "const canvas = timeline.canvas.getBoundingClientRect();"
        "return [canvas.left + box.left + box.wide / 2,"
        "canvas.top + box.top + box.high / 2 - timeline.scrolled]; })()"
    )
    return float(x), float(y)


def test_nothing_is_complained_of_or_asked_for(opened: Browser, tmp_path: Path) -> None:
    opened.press("e")
    assert opened.complaints() == []
    assert opened.requests() == [(tmp_path / "report.html").as_uri()]


def test_a_click_shows_operands_and_why_a_task_starts(opened: Browser, planned: Result) -> None:
    opened.run("document.getElementById('rows').scrollIntoView({block: 'center'})")
    opened.settle()
    opened.click(*middle(opened, 40))
    shown = opened.run("document.getElementById('details').innerText")
    task, placed = planned.problem.tasks[40], (planned.plan or duo_plan()).placements[40]
    assert task.name in shown
    assert f"Why it starts at {placed.start:,}" in shown
    for read_ in placed.reads:
        slice_ = (planned.plan or duo_plan()).residencies[read_].slice or 0
        assert planned.problem.buffers[planned.problem.slices[slice_].buffer].name in shown


def test_keys_walk_along_the_critical_chain_and_zoom(opened: Browser) -> None:
    opened.press("e")
    last = opened.run("report.view.chosen")
    assert last == opened.run("report.model.chain[report.model.chain.length - 1]")
    opened.press("p")
    assert opened.run("report.view.chosen") == opened.run("report.model.chain.at(-2)")
    opened.press("0")
    whole = opened.run("report.view.to - report.view.from")
    opened.press("+")
    assert opened.run("report.view.to - report.view.from") < whole
    opened.press("Escape")
    assert opened.run("report.view.chosen") is None


def test_names_with_markup_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    duo_page(with_evil_names(duo_problem())).save(tmp_path / "evil.html")
    browser.open(tmp_path / "evil.html")
    browser.press("e")
    browser.press("p")
    assert browser.run("window.hacked") is None
    assert browser.run("document.images.length") == 0
    assert EVIL[1] in browser.run("document.getElementById('details').innerText")
    assert browser.complaints() == []
