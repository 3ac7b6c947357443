"""Whatever happens to a worker becomes a status in words."""

import json
import os
import signal
import sys
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from time import monotonic, sleep

import pytest

from spmilp.bench.child import Conversation, RunRequest, Workers
from spmilp.bench.suite import Built
from spmilp.solvers.base import SolveOptions

pytestmark = pytest.mark.full

MOMENT = json.dumps({"event": "moment", "seconds": 1.0, "objective": 9, "bound": 5})


def request(folder: Path, time_limit: float | None = 0.2) -> RunRequest:
    return RunRequest(
        instance="x",
        source=Built("x"),
        objective=None,
        pickled=folder / "problem",
        problem_sha256="aa",
        solver="list",
        options=SolveOptions(time_limit=time_limit),
    )


def workers(folder: Path, script: str, *, reuse: bool = False) -> Workers:
    """Return workers that run a Python script instead."""
    lines = f"import os, signal, sys, time\ndef say(text): print(text, flush=True)\n{script}"
    return Workers(folder, (sys.executable, "-c", lines), reuse=reuse)


def ask(folder: Path, script: str) -> Conversation:
    return workers(folder, script).ask(request(folder))


def test_the_answer_and_the_course_are_collected(tmp_path: Path) -> None:
    said = ask(
        tmp_path, f"say('''{MOMENT}'''); say('{{\"event\": \"ended\", \"status\": \"fine\"}}')"
    )

    assert said.outcome == {"status": "fine"}
    assert [(moment.seconds, moment.objective) for moment in said.history] == [(1.0, 9)]


def test_a_crash_keeps_the_course_and_names_the_signal(tmp_path: Path) -> None:
    script = f"say('''{MOMENT}'''); sys.stderr.write('oh no'); sys.stderr.flush()\n"
    said = ask(tmp_path, script + "os.kill(os.getpid(), signal.SIGSEGV)")

    assert (said.outcome, said.status) == (None, "crashed")
    assert said.reason == "ended by SIGSEGV: oh no"
    assert len(said.history) == 1


def test_an_exception_is_the_reason(tmp_path: Path) -> None:
    said = ask(tmp_path, "raise ValueError('broken table')")
    assert (said.status, said.reason) == ("crashed", "ValueError: broken table")


def test_a_worker_without_a_word_is_told_by_its_exit_code(tmp_path: Path) -> None:
    said = ask(tmp_path, "sys.exit(3)")
    assert (said.status, said.reason) == ("crashed", "ended with exit code 3")


def test_a_worker_that_the_kernel_ends_is_no_crash(tmp_path: Path) -> None:
    said = ask(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert said.status == "killed"
    assert "memory" in said.reason


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"event": "skipped", "reason": "no data"}, "skipped"),
        ({"event": "failed", "status": "out of memory", "reason": "no data"}, "out of memory"),
    ],
)
def test_a_worker_may_say_why_it_cannot(tmp_path: Path, event: dict[str, str], status: str) -> None:
    said = ask(tmp_path, f"say('''{json.dumps(event)}''')")
    assert (said.outcome, said.status, said.reason) == (None, status, "no data")


def test_a_solver_that_goes_on_and_on_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.bench.child.LEAST_GRACE", 0.1)
    script = 'say(\'{"event": "started"}\')\n' + f"say('''{MOMENT}''')\ntime.sleep(60)"
    started = monotonic()
    said = ask(tmp_path, script)

    assert monotonic() - started < 30
    assert said.status == "overrun"
    assert "after the limit of 0.2 s" in said.reason
    assert len(said.history) == 1


def test_the_clock_of_the_solver_does_not_run_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.bench.child.LEAST_GRACE", 0.1)
    steps = ['{"event": "started"}', '{"event": "solved"}']
    script = f"time.sleep(0.5); say('{steps[0]}'); say('{steps[1]}'); time.sleep(0.5)\n"
    assert ask(tmp_path, script + 'say(\'{"event": "ended"}\')').outcome == {}


def test_no_worker_lives_on_when_all_are_ended(tmp_path: Path) -> None:
    asked = workers(tmp_path, 'say(\'{"event": "started"}\'); time.sleep(60)')
    raised: list[BaseException] = []

    def talk() -> None:
        try:
            asked.ask(request(tmp_path, time_limit=None))
        except CancelledError as error:
            raised.append(error)

    thread = threading.Thread(target=talk)
    thread.start()
    sleep(0.3)
    asked.end_all()
    thread.join(timeout=20)

    assert not thread.is_alive()
    assert len(raised) == 1
    with pytest.raises(CancelledError):
        asked.ask(request(tmp_path))


def test_what_a_worker_has_started_ends_with_it(tmp_path: Path) -> None:
    child = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    script = f"import subprocess; p = subprocess.Popen({child}); open('{tmp_path}/pid', 'w').write("
    said = ask(tmp_path, script + "str(p.pid)); os._exit(3)")
    pid = int((tmp_path / "pid").read_text())

    assert said.status == "crashed"
    deadline = monotonic() + 20
    while _is_running(pid) and monotonic() < deadline:
        sleep(0.02)
    assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    """Whether a process is there and no zombie, whose parent need not be in a hurry."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_nothing_but_errors_is_left_behind(tmp_path: Path) -> None:
    ask(tmp_path, 'say(\'{"event": "ended"}\')')
    assert [path.suffix for path in tmp_path.iterdir()] == [".err"]


ECHO = """
import json
for number, line in enumerate(sys.stdin):
    say(json.dumps({"event": "ended", "pid": os.getpid(), "number": number}))
"""


def test_a_quick_worker_gets_the_next_request_and_one_that_has_ended_is_replaced(
    tmp_path: Path,
) -> None:
    asked = workers(tmp_path, ECHO, reuse=True)
    first, second = (asked.ask(request(tmp_path)).outcome for _ in range(2))
    assert first is not None
    assert second == {"pid": first["pid"], "number": 1}

    os.kill(first["pid"], signal.SIGKILL)
    deadline = monotonic() + 20
    while _is_running(first["pid"]) and monotonic() < deadline:
        sleep(0.02)
    third = asked.ask(request(tmp_path)).outcome
    assert third is not None
    assert third["pid"] != first["pid"]
    assert third["number"] == 0

    asked.end_all()
    assert not _is_running(third["pid"])


def test_a_worker_that_was_slow_gets_no_other_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.bench.child.QUICK", 0.0)
    asked = workers(tmp_path, ECHO, reuse=True)
    first, second = (asked.ask(request(tmp_path)).outcome for _ in range(2))
    assert first is not None
    assert second is not None
    assert first["pid"] != second["pid"]
