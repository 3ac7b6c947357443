"""The front doors: the command line inside this process, files, and the second checker."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import pytest

from tests.checker.mutations.verdicts import REFUSED, Verdict, of_second

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"
PROBLEMS = ROOT / "instances" / "problems"
CONFORMANCE = ROOT / "instances" / "conformance"
GOLDEN = Path(__file__).parent / "golden"
YARDSTICKS = json.loads((Path(__file__).parent / "yardsticks.json").read_text())
"""What a revision before this suite found: bounds, lengths of the list scheduler, packings."""

MACHINES = (
    *("blackhole", "cell_be", "coolidge", "edge16", "epiphany3", "epiphany4", "gap8", "gap9"),
    *("ipu_mk2", "mesh4x4", "occamy", "set_8x8", "stream_quad", "sw26010_cg", "vdla", "wormhole"),
    "xdna1",
)


class Left(BaseException):
    """The command has left its process."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run: TypeAlias = Callable[..., Ended]
"""Running the command as a user does, inside the test's process."""


def run_main(arguments: Iterable[object], patch: pytest.MonkeyPatch) -> int:
    """Run ``spmilp`` with arguments; return its exit code."""
    from spmilp.__main__ import main

    def leave(code: int) -> NoReturn:
        raise Left(code)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    with patch.context() as during:
        during.setattr(sys, "argv", ["spmilp", *map(str, arguments)])
        during.setattr(os, "_exit", leave)
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
        except Left as ended:
            return int(ended.args[0])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


def verdict(problem: Path, plan: Path) -> Verdict:
    """Return the rules that a plan breaks as the package sees it."""
    import spmilp

    try:
        return frozenset(each.rule for each in spmilp.read(plan, problem=problem).violations)
    except spmilp.SpmilpError:
        return REFUSED


def assert_valid(folder: Path) -> None:
    """Ask both checkers about a folder with a problem and its plan."""
    problem, plan = folder / "problem.json", folder / "plan.json"
    assert verdict(problem, plan) == frozenset()
    assert of_second(problem.read_bytes(), plan.read_bytes()) == frozenset()
