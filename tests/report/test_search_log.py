"""The log of a search keeps what is better than all before it."""

import json
from itertools import count
from pathlib import Path

from report.duo import duo_problem
from spmilp.report.figures import gap_over_time
from spmilp.report.search_log import LogEntry, SearchLog, read_log


def logged() -> tuple[LogEntry, ...]:
    seconds = count(1)
    log = SearchLog(lambda: float(next(seconds)))
    for source, incumbent, bound in (
        ("first", None, 0),
        ("tiles", 100, None),
        ("hint", 110, 0),
        ("work", None, 60),
        ("lns", 90, 50),
        ("cpsat", 90, 60),
        ("cpsat", 90, 90),
    ):
        log.note(source, incumbent, bound)
    return log.entries


def test_only_what_is_better_is_kept_with_the_best_of_both() -> None:
    assert [(each.source, each.incumbent, each.bound, each.gap) for each in logged()] == [
        ("tiles", 100, None, None),
        ("work", 100, 60, 0.4),
        ("lns", 90, 60, 1 / 3),
        ("cpsat", 90, 90, 0.0),
    ]


def test_lines_of_json_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    lines = [json.dumps(entry.as_fields()) for entry in logged()]
    file.write_text("\n".join([*lines, '{"event": "end", "status": "optimal"}\n']))
    assert read_log(file) == logged()


def test_the_figure_shows_incumbent_and_bound() -> None:
    (axis,) = gap_over_time(duo_problem(), logged()).axes
    lines = {str(line.get_label()): line.get_xydata().tolist() for line in axis.lines}
    assert lines["incumbent"] == [[1, 100], [2, 100], [3, 90], [4, 90]]
    assert lines["bound"][1:] == [[2, 60], [3, 60], [4, 90]]
    assert axis.get_ylabel() == "cycles"
