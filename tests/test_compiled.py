"""Compiled functions are kept between processes, and never after what they are made from changed.

Each test runs a package of its own, with the real compiler and cache and two small functions.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spmilp

pytestmark = pytest.mark.full

PACKAGE = Path(spmilp.__file__).parent

CALLEE = """
from spmilp.compiled import part
from spmilp.inside.numbers import ADDED

@part
def raised(value: int) -> int:
    return value + ADDED
"""

ENTRY = """
from spmilp.inside.callee import raised
from spmilp.compiled import kernel

@kernel
def doubled(value: int) -> int:
    return 2 * raised(value)
"""

RUN = """
from spmilp.inside.entry import doubled
print(doubled(20), sum(doubled.__wrapped__.stats.cache_hits.values()))
"""


INTERRUPTED = """
import os, signal
from threading import Timer
import numpy as np
from spmilp.compiled import compiled

@compiled
def numbers(count: int) -> tuple[np.ndarray, np.ndarray]:
    last = np.zeros(3, np.int64)
    for number in range(count):
        last[number % 3] ^= last[(number + 1) % 3] + number
    return last, last.copy()

numbers(1)
Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    numbers(1_000_000_000)
except KeyboardInterrupt:
    print(1)
"""
"""Python handles the signal while numba makes arrays of what is returned."""

CUT = """
import os, signal
from numba.core.event import Listener, register
from spmilp.inside.entry import doubled

class Interrupting(Listener):
    def on_start(self, event: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def on_end(self, event: object) -> None:
        pass

register("numba:compiler_lock", Interrupting())
try:
    doubled(20)
except KeyboardInterrupt:
    print(len(doubled.__wrapped__.signatures))
"""


MODULES = ("compiled.py", "processes.py", "errors.py")


class Package:
    """A package ``spmilp`` of the compiler, the cache and two functions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self._package = folder / "spmilp"
        (self._package / "inside").mkdir(parents=True)
        for name in MODULES:
            shutil.copy(PACKAGE / name, self._package / name)
        (self._package / "__init__.py").touch()
        self.write("callee", CALLEE)
        self.write("entry", ENTRY)
        self.add(1)

    def write(self, module: str, text: str) -> None:
        (self._package / "inside" / f"{module}.py").write_text(text)

    def add(self, number: int) -> None:
        """Change the constant that the callee imports."""
        self.write("numbers", f"ADDED = {number}\n")

    def start(self, program: str = RUN, **environment: str) -> subprocess.Popen[str]:
        known = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        known.pop("NUMBA_DISABLE_JIT", None)
        return subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=self.folder,
            env={**known, "NUMBA_CACHE_DIR": str(self.cache), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str = RUN, **environment: str) -> list[int]:
        """Return the answer and the number of functions that came from the cache."""
        return finish(self.start(program, **environment))

    def folders(self) -> list[Path]:
        return sorted(self.cache.glob("spmilp/*"))


def finish(process: subprocess.Popen[str]) -> list[int]:
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    return [int(word) for word in out.split()]


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)


def test_a_second_process_compiles_nothing(package: Package) -> None:
    assert package.run() == [42, 0]
    assert package.run() == [42, 1]


def test_an_interrupt_while_compiled_code_runs_is_one_behind_it(package: Package) -> None:
    assert package.run(INTERRUPTED) == [1]


def test_an_interrupt_waits_until_a_function_is_compiled_whole(package: Package) -> None:
    assert package.run(CUT) == [1]
    # The same where it comes from the cache.
    assert package.run(CUT) == [1]


def test_a_change_two_modules_below_is_seen(package: Package) -> None:
    assert package.run() == [42, 0]
    package.add(2)
    assert package.run() == [44, 0]
    package.add(1)
    assert package.run() == [42, 1]


def test_damaged_files_are_replaced(package: Package) -> None:
    package.run()
    (folder,) = package.folders()
    for file in folder.iterdir():
        file.write_bytes(b"\x80\x04nonsense")
    assert package.run() == [42, 0]
    assert package.run() == [42, 1]


def test_processes_that_compile_at_the_same_time_agree(package: Package) -> None:
    processes = [package.start() for _ in range(4)]
    assert [finish(process)[0] for process in processes] == [42] * 4
    assert package.run() == [42, 1]
    (folder,) = package.folders()
    assert sorted(file.suffix for file in folder.iterdir()) == [".nbc", ".nbi"]
