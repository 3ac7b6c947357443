"""Kernels are compiled where the tests run, and as Python they find the same."""

import os
import re
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from spmilp import compiled
from spmilp.bounds import cuts
from spmilp.errors import SpmilpError
from spmilp.packing import arrays
from spmilp.solvers.justify.schedule import Demands, PartialOrderSchedule
from spmilp.solvers.justify.transfer_options import Booking, Copy, OptionTables
from spmilp.solvers.modulo.reservations import Busy, Reservations
from spmilp.solvers.schedule.assignments import locality
from spmilp.solvers.schedule.kernels.eviction import Request
from spmilp.solvers.schedule.kernels.records import Rows
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import (
    AddressSpace,
    ScheduleState,
    TableRows,
    Weights,
)
from spmilp.solvers.schedule.kernels.timeline import Timeline
from spmilp.solvers.schedule.orders import depth_first
from tests.solvers.chains import chain, star

ROOT = Path(__file__).parents[1]
KERNELS = re.findall(r'^    "(spmilp\.[\w.]+)",$', (ROOT / "setup.py").read_text(), re.MULTILINE)

SCHEDULES = """
from spmilp.compiled import IS_COMPILED
from spmilp.pipeline import solve
from spmilp.plan.file import plan_bytes
from tests.solvers.chains import chain, star
print(IS_COMPILED)
for solver in ("list", "lns"):
    for problem in (
        "instances/problems/residual-6t-1c-tight-balanced.json",
        chain(star(4, 896), layers=2, strips=3),
        chain(star(4, 4096), layers=2, strips=2),
    ):
        result = solve(problem, solver=solver, time_limit=None)
        print(plan_bytes(result.plan, result.problem))
"""
PACKINGS = """
from dataclasses import replace
from random import Random
from spmilp.compiled import IS_COMPILED
from spmilp.packing import minimise, pack, pack_by
from tests.packing.random_problems import plain_problem, rich_problem
from tests.packing.searching import search_alone
print(IS_COMPILED)
for seed in range(12):
    for problem in (plain_problem(Random(seed), 9), rich_problem(Random(seed))):
        try:
            least = minimise(problem)
        except ValueError as error:
            print(error)
            continue
        print(least.status, least.offsets, least.bound, least.nodes)
        print(pack_by("xla", problem).offsets, pack_by("usmp:hill_climb", problem).offsets)
        for less in (0, 1) if least.height else ():
            asked = replace(problem, capacity=least.height - less)
            packing, searched = pack(asked), search_alone(asked)
            print(packing.status, packing.conflict, packing.nodes)
            print(searched.outcome.name, searched.offsets, searched.restarts)
"""
BOUNDS = """
from pathlib import Path
from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import paths_of
from spmilp.compiled import IS_COMPILED
from spmilp.problem.file import read_problem
print(IS_COMPILED)
for file in sorted(Path("instances/problems").glob("*-[2-9][0-9]t-*.json")):
    problem = read_problem(file)
    print(file, paths_of(problem, Movement(problem)))
"""


def why_none_is_compiled() -> str:
    """Return why there can be no machine code; nothing if there should be some."""
    if os.environ.get("SPMILP_UNCOMPILED"):
        return "SPMILP_UNCOMPILED is set"
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if which(compiler.split()[0]) is None:
        return f"there is no C compiler {compiler}: kernels run as Python"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return "" if header.exists() else f"there is no {header}: kernels run as Python"


needs_machine_code = pytest.mark.skipif(
    bool(why_none_is_compiled()), reason=why_none_is_compiled() or "-"
)


@needs_machine_code
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_compiled_from_what_their_files_hold_now(name: str) -> None:
    module = ROOT / name.replace(".", "/")
    code = Path(import_module(name).__file__ or "")

    again = "install again as README says: pip install -e '.[test]'"
    assert code.parent == module.parent
    assert code.suffix != ".py", again
    for source in (module.with_suffix(".py"), module.with_suffix(".pxd")):
        assert code.stat().st_mtime >= source.stat().st_mtime, again


@needs_machine_code
@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "least"),
    [(SCHEDULES, 6), (PACKINGS, 80), (BOUNDS, 10)],
    ids=["schedules", "packings", "bounds"],
)
def test_kernels_find_the_same_as_python(program: str, least: int) -> None:
    said, *found = answers(program)
    said_by_python, *found_by_python = answers(program, SPMILP_UNCOMPILED="1")

    assert (said, said_by_python) == ("True", "False")
    assert len(found) >= least
    assert found_by_python == found


def answers(program: str, **environment: str) -> list[str]:
    """Return the lines that a process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_machine_code_that_is_older_than_a_struct_is_refused(tmp_path: Path) -> None:
    for name in ("kernel.py", "kernel.pxd", "kernel.abi3.so", "tables.pxd"):
        (tmp_path / name).touch()
    code = (tmp_path / "kernel.abi3.so").stat().st_mtime_ns
    for source in ("kernel.py", "kernel.pxd", "tables.pxd"):
        os.utime(tmp_path / source, ns=(code - 10**9, code - 10**9))
    compiled.require_current(tmp_path)
    for source in ("kernel.py", "tables.pxd"):
        os.utime(tmp_path / source, ns=(code + 10**9, code + 10**9))
        with pytest.raises(SpmilpError, match=r"kernel\.abi3\.so was compiled from other sources"):
            compiled.require_current(tmp_path)
        os.utime(tmp_path / source, ns=(code - 10**9, code - 10**9))


STRUCTS: dict[str, tuple[Any, ...]] = {
    "bounds/cuts": (cuts.Tasks, cuts.Edges, cuts.Ports, cuts.Window, cuts.Heap, cuts.Known),
    "packing/arrays": (
        *(arrays.Outline, arrays.Tables, arrays.State, arrays.Frames),
        *(arrays.Agenda, arrays.Memo, arrays.Arrays),
    ),
    "solvers/justify/schedule": (Rows, Demands, PartialOrderSchedule),
    "solvers/justify/transfer_options": (OptionTables, Copy, Booking),
    "solvers/modulo/reservations": (Busy, Reservations),
    "solvers/schedule/kernels/eviction": (Request,),
    "solvers/schedule/kernels/schedule_state": (
        *(AddressSpace, Weights, TableRows, ScheduleState),
    ),
    "solvers/schedule/kernels/timeline": (Timeline,),
}
NAMES = {
    PartialOrderSchedule: "CSchedule",
    AddressSpace: "Space",
    TableRows: "TableRows",
    ScheduleState: "State",
}

ROWS = (
    *("Task", "Read", "Write", "SliceRow", "BufferRow", "CoreRow", "MemoryRow", "Pair"),
    *("Option", "Resource", "ResidencyRow", "TransferRow", "Price", "Block"),
)


@pytest.mark.parametrize(
    ("file", "kind"), [(file, kind) for file, kinds in STRUCTS.items() for kind in kinds]
)
def test_structs_have_the_fields_of_the_tuples_in_their_order(file: str, kind: Any) -> None:
    assert fields_of(file, NAMES.get(kind, f"C{kind.__name__}")) == kind._fields


def test_rows_in_c_have_the_columns_of_the_tables_in_their_order() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    _, state = Runner(problem).run(depth_first(problem), locality(problem), Weights())
    file = "solvers/schedule/kernels/schedule_state"
    tables = (
        *(state.tasks, state.reads, state.writes, state.slices, state.buffers, state.cores),
        *(state.memories, state.pairs, state.options, state.resources, state.residencies),
        *(state.transfers, state.prices, state.space.blocks),
    )
    rows = dict(zip(ROWS, tables, strict=True))
    assert {name: fields_of(file, name) for name in rows} == {
        name: table.dtype.names for name, table in rows.items()
    }
    timeline = "solvers/schedule/kernels/timeline"
    assert fields_of(timeline, "Step") == state.timeline.steps.dtype.names
    assert fields_of(timeline, "Profile") == state.timeline.resources.dtype.names


def fields_of(file: str, struct: str) -> tuple[str, ...]:
    """Return the fields of a struct in C, in their order."""
    text = (ROOT / "spmilp" / f"{file}.pxd").read_text()
    (found,) = re.findall(rf"ctypedef struct {struct}:\n((?: +.*\n)+)", text)
    return tuple(line.replace("*", "").split()[-1] for line in found.splitlines())


def test_that_kernels_are_slow_is_said_once_unless_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(compiled, "IS_COMPILED", False)
    monkeypatch.setattr(compiled, "_said", set())
    monkeypatch.setenv("SPMILP_UNCOMPILED", "1")
    compiled.warn_if_slow(heard.append)
    assert heard == []

    monkeypatch.delenv("SPMILP_UNCOMPILED")
    compiled.warn_if_slow(heard.append)
    compiled.warn_if_slow(heard.append)
    assert heard == [compiled.SLOW]
