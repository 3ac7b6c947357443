"""The front doors: the command line inside this process, files, and the second checker."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NoReturn, TypeAlias

import pytest

from docs import checker as second

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


Rules: TypeAlias = frozenset[str]
REFUSED: Rules = frozenset({"refused"})
"""The file cannot be read."""


@cache
def _second_problem(content: bytes) -> Any:
    return second.read_problem(content)


def second_verdict(problem: bytes, plan: bytes) -> Rules:
    """Return the rules that a plan breaks as ``docs/checker.py`` sees it."""
    try:
        read = _second_problem(problem)
        return frozenset(rule for rule, _ in second.violations(read, second.read_plan(plan, read)))
    except second.RefusedError:
        return REFUSED


def verdict(problem: Path, plan: Path) -> Rules:
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
    assert second_verdict(problem.read_bytes(), plan.read_bytes()) == frozenset()


def numbers_of(plan: Mapping[str, Any]) -> list[tuple[str, int, str, int | None]]:
    """Return where a plan has numbers: table, row, field, and the place in a list."""
    found: list[tuple[str, int, str, int | None]] = []
    for table in ("tensors", "tasks", "residencies", "transfers"):
        for number, row in enumerate(plan[table]):
            for field, value in row.items():
                if isinstance(value, list):
                    found += [(table, number, field, place) for place in range(len(value))]
                elif isinstance(value, int):
                    found.append((table, number, field, None))
    return found + [("solve", 0, field, None) for field in ("makespan", "dram_traffic", "bound")]


def mutant(plan: Mapping[str, Any], random: Random) -> tuple[str, bytes]:
    """Return a plan's file in which one or two numbers are others, and what was changed."""
    changed = json.loads(json.dumps(plan))
    places = numbers_of(plan)
    said = []
    for table, number, field, place in random.sample(places, random.choice((1, 1, 1, 2))):
        row = changed[table] if table == "solve" else changed[table][number]
        old = row[field] if place is None else row[field][place]
        other = random.choice(places)
        row_of_other = plan[other[0]] if other[0] == "solve" else plan[other[0]][other[1]]
        value = row_of_other[other[2]]
        taken = value if other[3] is None else value[other[3]]
        new = random.choice((old + 1, old - 1, 0, old * 2, old + 64, taken))
        said.append(f"{table}[{number}].{field}: {old} -> {new}")
        if place is None:
            row[field] = new
        else:
            row[field][place] = new
    return ", ".join(said), json.dumps(changed).encode()
