"""The command in a process of its own: streams that take nothing, and signals at any moment."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM
from spmilp.plan.file import write_pair

pytestmark = pytest.mark.full

SPMILP = (sys.executable, "-m", "spmilp")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write_pair(PROBLEM, PLAN, tmp_path)
    return tmp_path


def shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of bash in which ``spmilp`` is this one; its code is the first command's."""
    script = f'spmilp() {{ "{sys.executable}" -m spmilp "$@"; }}; {line}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120
    )


SOLVE = "spmilp solve problem.json --solver list -o out --quiet"


@pytest.mark.parametrize("command", ["spmilp check .", "spmilp check . --json", SOLVE])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_change_nothing(command: str, closed: str, saved: Path) -> None:
    done = shell(f"{command} {closed}", saved)
    assert (done.returncode, done.stderr) == (0, "")
    if command == SOLVE:
        assert json.loads((saved / "out/plan.json").read_text())["format"] == "spmilp-plan"


@pytest.mark.parametrize("command", ["spmilp check .", "spmilp check . --json", SOLVE])
def test_output_that_nobody_can_take_is_an_error(command: str, saved: Path) -> None:
    done = shell(f"{command} > /dev/full", saved)
    assert done.returncode == 3
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"
    assert shell(f"{command} 2> /dev/full", saved).returncode == 0
    assert shell("spmilp check absent 2> /dev/full", saved).returncode == 3


def test_letters_that_an_output_does_not_know_are_escaped(saved: Path) -> None:
    done = shell(f"PYTHONIOENCODING=ascii {SOLVE}", saved)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xd7 compulsory" in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("json_wanted", [False, True])
def test_a_signal_while_starting_says_so(
    number: signal.Signals, code: int, json_wanted: bool, saved: Path
) -> None:
    # The first module of the command line that is loaded after the signals are heeded.
    (saved / "typer.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    arguments = ["solve", "problem.json", *(["--json"] if json_wanted else [])]
    done = subprocess.run(
        [*SPMILP, *arguments],
        cwd=saved,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(saved)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    said = "interrupted; files hold what they held before, or all that is new"
    assert (done.returncode, done.stderr) == (code, f"error: {said}\n")
    if json_wanted:
        answer = json.loads(done.stdout)
        assert (answer["exit_code"], answer["error"]["message"]) == (code, said)


def wait_until_it_heeds_signals(process: "subprocess.Popen[bytes]") -> None:
    """Wait until SIGTERM is caught, which Python itself does not do."""
    status = Path(f"/proc/{process.pid}/status")
    for _ in range(1000):
        (caught,) = re.findall(r"SigCgt:\s*(\w+)", status.read_text()) or ["0"]
        if int(caught, 16) & 1 << signal.SIGTERM - 1:
            return
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what it heeds is not known")
@pytest.mark.parametrize("signals", [1, 3])
def test_signals_at_any_moment_have_their_code_and_leave_a_whole_pair(
    signals: int, saved: Path
) -> None:
    for delay in (0.0, 0.5, 2.0):
        process = subprocess.Popen(
            [*SPMILP, "solve", "problem.json", "--time-limit", "3s", "-o", "."],
            cwd=saved,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        wait_until_it_heeds_signals(process)
        time.sleep(delay)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, b"Traceback" in said) in ((0, False), (130, False))
        assert shell("spmilp check .", saved).returncode == 0
