"""Writes ``plan.json``, alone or with its problem."""

from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spmilp.files import require_room, sha256_of, write_atomically, write_together
from spmilp.machine.fields import what_is_wrong
from spmilp.plan import derived
from spmilp.plan.model import FORMAT, VERSION, PlanModel
from spmilp.plan.plan import Placement, Plan
from spmilp.plan.rows import residency_lines, transfer_lines
from spmilp.problem.documents import Lines, Rows, as_bytes, collector_paused, row
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.write import problem_sha256 as hash_of_problem
from spmilp.problem.write import problem_text
from spmilp.version import __version__

PROBLEM_FILE = "problem.json"
PLAN_FILE = "plan.json"

TRANSFERS_PER_SLICE = 5
BYTES_PER_TRANSFER = 640
"""In ``plan.json``, with the residencies that it fills."""
BYTES_PER_ROW = 210
"""In ``problem.json``, of a slice or a task."""


def write_plan(
    plan: Plan, problem: Problem, path: Path | str, *, problem_sha256: str | None = None
) -> None:
    """Write a plan to a file, as a whole or not at all.

    The file names the problem by its SHA-256, whether or not the plan does.

    Parameters
    ----------
    problem_sha256
        The problem's, if it is known; otherwise it is computed.

    Raises
    ------
    ValueError
        If the plan names another problem, or has a number that the format cannot hold.
    FileError
        If the file cannot be written.
    """
    write_atomically(path, plan_bytes(plan, problem, problem_sha256))


def write_pair(problem: Problem, plan: Plan, folder: Path, prefix: str = "") -> tuple[Path, Path]:
    """Write ``problem.json`` and ``plan.json`` into a folder, both or none; return their paths.

    Raises
    ------
    ValueError
        If the plan has a number that the format cannot hold.
    FileError
        If the folder cannot be written.
    """
    problem_file = problem_text(problem).encode()
    plan_file = plan_bytes(plan, problem, sha256_of(problem_file))
    names = (prefix + PROBLEM_FILE, prefix + PLAN_FILE)
    problem_path, plan_path = write_together(
        folder, dict(zip(names, (problem_file, plan_file), strict=True))
    )
    return problem_path, plan_path


def room_for_pair(problem: Problem, folder: Path) -> None:
    """Make sure that a folder takes ``problem.json`` and ``plan.json`` before a plan is there.

    The size is an estimate, from plans of nine networks that had 0.2 to 1.1 times as many bytes.

    Raises
    ------
    FileError
        If it does not.
    """
    reads = sum(len(task.reads) for task in problem.tasks)
    transfers = min(reads, TRANSFERS_PER_SLICE * len(problem.slices))
    rows = len(problem.slices) + len(problem.tasks)
    size = BYTES_PER_TRANSFER * transfers + BYTES_PER_ROW * rows
    require_room(folder, (PROBLEM_FILE, PLAN_FILE), size)


def plan_text(plan: Plan, problem: Problem, sha256: str | None = None) -> str:
    """Return :func:`plan_bytes` as text."""
    return plan_bytes(plan, problem, sha256).decode()


@collector_paused()
def plan_bytes(plan: Plan, problem: Problem, sha256: str | None = None) -> bytes:
    """Return the content of ``plan.json``; equal plans give equal bytes.

    Parameters
    ----------
    sha256
        The problem's, if it is known.

    Raises
    ------
    ValueError
        As :func:`write_plan`.
    """
    sha256 = sha256 or hash_of_problem(problem)
    if plan.problem_sha256 not in ("", sha256):
        raise ValueError(
            f"the plan answers a problem of SHA-256 {plan.problem_sha256}, not {problem.name} of "
            f"{sha256}"
        )
    try:
        return as_bytes(plan_document(plan, problem, sha256), PlanModel)
    except ValidationError as error:
        raise ValueError(f"plan of {problem.name}: {what_is_wrong(error, PlanModel)}") from error


def plan_document(plan: Plan, problem: Problem, sha256: str) -> dict[str, Any]:
    """Return the fields of ``plan.json``, the derived ones included."""
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "meta": _meta(problem, sha256),
        "solve": _solve(plan, problem),
        "tensors": _tensors(plan, problem),
        "tasks": Rows(lambda placement: _task(problem, placement), plan.placements),
        "residencies": _residencies(problem, plan),
        "transfers": _transfers(problem, plan),
        "cores": derived.of_cores(problem, plan),
    }


def _meta(problem: Problem, sha256: str) -> dict[str, Any]:
    sources = dict(problem.sources)
    return {
        "tool": "spmilp",
        "tool_version": __version__,
        "problem": problem.name,
        "machine": problem.machine.name,
        **row(model_sha256=sources.get("model"), machine_sha256=sources.get("machine")),
        "problem_sha256": sha256,
    }


def _solve(plan: Plan, problem: Problem) -> dict[str, Any]:
    claim = plan.claim
    value = {
        Quantity.MAKESPAN: claim.makespan,
        Quantity.DRAM_TRAFFIC: claim.dram_traffic,
        Quantity.ENERGY: claim.energy,
        Quantity.PEAK_SPM: claim.peak_spm,
    }[problem.objective.first]
    return {
        "solver": plan.solver,
        "options": plan.options,
        "objective": problem.objective.first.value,
        "value": value,
        "bound": claim.bound,
        "bound_source": claim.bound_source,
        "gap": (value - claim.bound) / value if value > 0 else 0.0,
        "makespan": claim.makespan,
        "dram_traffic": claim.dram_traffic,
        "energy": claim.energy,
        "peak_spm": claim.peak_spm,
    }


def _tensors(plan: Plan, problem: Problem) -> list[dict[str, Any]]:
    rows = []
    for index, address in enumerate(plan.tensors):
        fields: dict[str, Any] = {"index": index}
        if index < len(problem.tensors):
            tensor = problem.tensors[index]
            fields |= {
                "name": tensor.name,
                "memory": tensor.memory,
                "memory_name": problem.machine.memories[tensor.memory].name,
                "bytes": tensor.bytes,
            }
        rows.append(fields | {"address": address})
    return rows


def _task(problem: Problem, placement: Placement) -> dict[str, Any]:
    names = derived.of_task(problem, placement)
    return row(
        index=placement.task,
        name=names.get("name"),
        core=placement.core,
        core_name=names.get("core_name"),
        start=placement.start,
        cycles=placement.end - placement.start,
        reads=placement.reads,
        writes=placement.writes,
        scratch=placement.scratch,
    )


def _residencies(problem: Problem, plan: Plan) -> Lines:
    fields = ("index", "slice", "memory", "offset", "bytes", "start", "end")
    fillers = ("filled_by_task", "filled_by_transfer")
    columns = {name: list(map(attrgetter(name), plan.residencies)) for name in (*fields, *fillers)}
    return Lines(residency_lines(problem, plan), columns)


def _transfers(problem: Problem, plan: Plan) -> Lines:
    fields = ("index", "slice", "engine", "channel", "start", "source", "destinations", "route")
    columns = {name: list(map(attrgetter(name), plan.transfers)) for name in fields}
    columns["cycles"] = [move.end - move.start for move in plan.transfers]
    return Lines(transfer_lines(problem, plan), columns)
