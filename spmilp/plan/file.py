"""Read and write ``plan.json``, alone or with its problem."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from spmilp.errors import FileError
from spmilp.files import read_bytes, write_together
from spmilp.formats import collector_paused, decoded, encoded, plain, read_document
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Stream, Transfer
from spmilp.problem.file import problem_bytes, problem_sha256, read_problem
from spmilp.problem.problem import Problem
from spmilp.units import Amount, Count, Cycles, ResidencyIdx
from spmilp.version import __version__

PROBLEM_FILE = "problem.json"
PLAN_FILE = "plan.json"

FORMAT = "spmilp-plan"
VERSION = "2.1"


class Meta(Struct, frozen=True):
    """Origin of the plan; only ``problem_sha256`` is read."""

    tool: str | None = None
    tool_version: str | None = None
    problem: str | None = None
    machine: str | None = None
    model_sha256: str | None = None
    machine_sha256: str | None = None
    problem_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solve(Claim):
    """Claims of the solver about its plan."""

    solver: str
    options: tuple[tuple[str, str], ...] = ()


class TensorRow(Struct, frozen=True):
    """The address of a DRAM tensor, in bytes."""

    index: Amount
    address: Amount


class TaskRow(Struct, frozen=True, kw_only=True):
    """A task on a core, ``cycles`` long; the residencies of its operands, results and scratch."""

    index: Amount
    core: Amount
    start: Cycles
    cycles: Count
    reads: tuple[ResidencyIdx, ...] = ()
    writes: tuple[ResidencyIdx, ...] = ()
    scratch: ResidencyIdx | None = None


class PlanFile(Struct, frozen=True, kw_only=True):
    """The content of ``plan.json``; ``docs/format.md`` explains it."""

    format: str
    format_version: str
    meta: Meta
    solve: Solve
    tensors: tuple[TensorRow, ...]
    tasks: tuple[TaskRow, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    stream: Stream | None = None


def open_pair(path: Path, problem_file: Path | None = None) -> tuple[Problem, Plan]:
    """Read a plan and its problem, by default the ``problem.json`` beside it.

    ``path`` is that of the plan, or of the folder whose ``plan.json`` it is.

    Raises a ``FileError`` if one cannot be read, or the plan was made for another problem.
    """
    plan_file = path / PLAN_FILE if path.is_dir() else path
    beside = problem_file or plan_file.with_name(PROBLEM_FILE)
    if not plan_file.exists():
        raise FileError(f"{plan_file}: no such file")
    if not beside.exists():
        raise FileError(
            f"{beside}: no such file; a plan is read with its problem: name it with --problem"
        )
    problem = read_problem(beside)
    return problem, read_plan(plan_file, problem)


@collector_paused()
def read_plan(path: Path | str, problem: Problem | None = None) -> Plan:
    """Read a plan. Whether it is valid, the checker decides.

    Raises a ``FileError`` if the file cannot be read, breaks the format, or is of another problem.
    """
    file, _ = read_document(path, read_bytes(path), PlanFile, FORMAT, VERSION)
    for position, tensor in enumerate(file.tensors):
        if tensor.index != position:
            raise FileError(f"{path}: tensors.{position}.index: {tensor.index}, not {position}")
    named = file.meta.problem_sha256
    if problem and named not in ("", expected := problem_sha256(problem)):
        raise FileError(
            f"{path}: meta.problem_sha256: the plan was made for another problem: it names "
            f"{named[:64]}, and {problem.name} has {expected}"
        )
    return Plan(
        placements=tuple(map(_placement, file.tasks)),
        residencies=file.residencies,
        transfers=file.transfers,
        tensors=tuple(tensor.address for tensor in file.tensors),
        claim=Claim(**{one.name: getattr(file.solve, one.name) for one in fields(Claim)}),
        solver=file.solve.solver,
        options=file.solve.options,
        problem_sha256=named,
        stream=file.stream,
    )


def _placement(row: TaskRow) -> Placement:
    """Return a task's row with the end in place of the cycles."""
    fields = asdict(row)
    end = row.start + fields.pop("cycles")
    return Placement(task=fields.pop("index"), end=end, **fields)


def write_pair(problem: Problem, plan: Plan, folder: Path, prefix: str = "") -> tuple[Path, Path]:
    """Write ``problem.json`` and then ``plan.json`` into a folder; return their paths.

    The plan names the problem's file by its SHA-256. So if the process ends between the two, the
    plan that was there before is not taken for one of the new problem.

    Raises a ``ValueError`` if the plan has a number that the format cannot hold. Raises a
    ``FileError`` if the folder cannot be written.
    """
    written = {
        prefix + PROBLEM_FILE: problem_bytes(problem),
        prefix + PLAN_FILE: plan_bytes(plan, problem),
    }
    problem_file, plan_file = write_together(folder, written)
    return problem_file, plan_file


@collector_paused()
def plan_bytes(plan: Plan, problem: Problem) -> bytes:
    """Return the content of ``plan.json``; equal plans give equal bytes.

    It names the problem by its SHA-256, whether or not the plan does.

    Raises a ``ValueError`` if the plan names another problem, or the format cannot hold a number.
    """
    sha256 = problem_sha256(problem)
    if plan.problem_sha256 not in ("", sha256):
        raise ValueError(
            f"the plan answers a problem of SHA-256 {plan.problem_sha256}, not {problem.name} of "
            f"{sha256}"
        )
    sources = dict(problem.sources)
    meta = {
        "tool": "spmilp",
        "tool_version": __version__,
        "problem": problem.name,
        "machine": problem.machine.name,
        "model_sha256": sources.get("model"),
        "machine_sha256": sources.get("machine"),
        "problem_sha256": sha256,
    }
    document = {
        "format": FORMAT,
        # The oldest version that has all of it: what is no stream keeps its bytes.
        "format_version": "2.0" if plan.stream is None else VERSION,
        "meta": {name: value for name, value in meta.items() if value is not None},
        "solve": {"solver": plan.solver, "options": plan.options, **plain(plan.claim)},
        "tensors": [{"index": i, "address": address} for i, address in enumerate(plan.tensors)],
        "tasks": list(map(_task, plan.placements)),
        "residencies": list(map(plain, plan.residencies)),
        "transfers": list(map(plain, plan.transfers)),
    }
    if plan.stream is not None:
        document["stream"] = plain(plan.stream)
    try:
        content = encoded(document)
        decoded(content, PlanFile)
    except ValueError as error:
        raise ValueError(f"plan of {problem.name}: {error}") from error
    return content


def _task(placement: Placement) -> dict[str, Any]:
    fields = plain(placement)
    head = {"index": fields.pop("task"), "core": fields.pop("core"), "start": fields.pop("start")}
    return head | {"cycles": fields.pop("end") - placement.start} | fields
