"""The report as Chromium draws it: clicking, keys, names with markup."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generated import generated_problem
from report.duo import duo_problem
from report.evil import EVIL, duo_page, with_evil_names
from spmilp.pipeline import solve
from spmilp.result import Result, read

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Result:
    result = solve(generated_problem(200, 8), solver="greedy:locality/round_robin")
    folder = tmp_path_factory.mktemp("plan")
    result.save(folder)
    return read(folder)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    """An empty page; it must not have complained of anything at the end."""
    page = chromium.new_page(viewport={"width": 1500, "height": 1000})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
    yield page
    page.close()
    assert complaints == []


def opened(tab: Any, file: Path) -> Any:
    tab.goto(file.as_uri())
    tab.wait_for_function(
        "performance.getEntriesByName('painted').length > 0 && window.report !== undefined"
    )
    return tab


@pytest.fixture
def report(tab: Any, planned: Result, tmp_path: Path) -> Any:
    planned.report(tmp_path / "report.html")
    return opened(tab, tmp_path / "report.html")


def test_nothing_is_asked_for(tab: Any, planned: Result, tmp_path: Path) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    planned.report(tmp_path / "report.html")
    opened(tab, tmp_path / "report.html").keyboard.press("e")
    assert asked == [(tmp_path / "report.html").as_uri()]


def test_what_binds_the_plan_takes_all_of_its_cycles(report: Any, planned: Result) -> None:
    cycles = report.locator("#bindings tbody td:first-child").all_inner_texts()
    assert sum(int(each.replace(",", "")) for each in cycles) == planned.makespan


def test_a_click_shows_operands_and_why_a_task_starts(report: Any, planned: Result) -> None:
    report.evaluate("document.getElementById('rows').scrollIntoView({block: 'center'})")
    x, y = report.evaluate(
        "() => { const timeline = report.timeline, box = timeline.boxOf(40);"
        "const canvas = timeline.canvas.getBoundingClientRect();"
        "return [canvas.left + box.left + box.wide / 2,"
        "canvas.top + box.top + box.high / 2 - timeline.scrolled]; }"
    )
    report.mouse.click(x, y)
    shown = report.inner_text("#details")
    task, placed = planned.problem.tasks[40], planned.plan.placements[40]
    assert task.name in shown
    assert f"Why it starts at {placed.start:,}" in shown
    for read_ in placed.reads:
        slice_ = planned.plan.residencies[read_].slice or 0
        assert planned.problem.buffers[planned.problem.slices[slice_].buffer].name in shown


def test_keys_walk_along_the_critical_chain_and_zoom(report: Any) -> None:
    report.keyboard.press("e")
    assert report.evaluate("report.view.chosen === report.model.chain.at(-1)")
    report.keyboard.press("p")
    assert report.evaluate("report.view.chosen === report.model.chain.at(-2)")
    report.keyboard.press("0")
    whole = report.evaluate("report.view.to - report.view.from")
    report.keyboard.press("+")
    assert report.evaluate("report.view.to - report.view.from") < whole
    report.keyboard.press("Escape")
    assert report.evaluate("report.view.chosen") is None


def test_names_with_markup_are_shown_as_text(tab: Any, tmp_path: Path) -> None:
    duo_page(with_evil_names(duo_problem())).save(tmp_path / "evil.html")
    opened(tab, tmp_path / "evil.html")
    tab.keyboard.press("e")
    tab.keyboard.press("p")
    assert tab.evaluate("window.hacked === undefined && document.images.length === 0")
    assert EVIL[1] in tab.inner_text("#details")
