"""Chromium without a window, driven through the two pipes of its DevTools protocol."""

import fcntl
import json
import os
import resource
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--no-default-browser-check", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--remote-debugging-pipe", "--force-device-scale-factor=1"),
)
SECONDS = 60.0
"""For an answer; a busy machine is slow."""


def chromium() -> str:
    """Return the browser's path; a test for which there is none is skipped."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("Chromium reserves more addresses than the limit allows (ulimit -H -v)")
    return found


class Browser:
    """One page, and what it has complained of or asked for."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._from = to, answers
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session: str | None = None
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            received = self._receive()
            if received.get("id") == self._number:
                if "error" in received:
                    raise RuntimeError(f"{method}: {received['error']['message']}")
                return dict(received["result"])
            self.events.append(received)

    def open(self, file: Path, width: int = 1500, height: int = 1000) -> None:
        """Open a file, and wait until the report is drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        self.wait_for("performance.getEntriesByName('painted').length > 0 && !!window.report")

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = monotonic() + SECONDS
        while not self.run(condition):
            if monotonic() > end:
                raise TimeoutError(f"{condition} never became true")

    def settle(self) -> None:
        """Wait until what has changed is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def point(self, kind: str, x: float, y: float) -> None:
        """Move the mouse, press or release it."""
        pressed = "none" if kind == "mouseMoved" else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=pressed, clickCount=1)

    def click(self, x: float, y: float) -> None:
        """Click with the left button."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.point(kind, x, y)
        self.settle()

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def complaints(self) -> list[str]:
        """Return errors and warnings of the console, and exceptions."""
        self.run("0")
        found = []
        for event in self.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(said["exceptionDetails"]["text"]))
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
                found.append(str(said["args"]))
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(str(said["entry"]["text"]))
        return found

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        self.run("0")
        sent = (each for each in self.events if each.get("method") == "Network.requestWillBeSent")
        return [str(each["params"]["request"]["url"]) for each in sent]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], SECONDS)
            part = os.read(self._from, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def running(program: str, profile: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    # The browser reads from 3 and writes to 4; none of ours may lie there.
    given = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in (theirs_in, theirs_out)]
    command = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    with open(profile / "log.txt", "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_with_pipes(*given),
            pass_fds=(3, 4),
        )
    for number in (theirs_in, theirs_out, *given):
        os.close(number)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        os.close(ours_out)
        os.close(ours_in)


def _with_pipes(reads: int, writes: int) -> Callable[[], None]:
    def prepare() -> None:
        os.dup2(reads, 3)
        os.dup2(writes, 4)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return prepare
