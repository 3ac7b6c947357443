"""Reads ``plan.json``, alone or with its problem."""

from pathlib import Path

import msgspec

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of
from spmilp.formats import (
    collector_paused,
    read_document,
    refuse_odd_fields,
    version_numbers,
)
from spmilp.plan.plan import Claim, Placement, Plan, Transfer
from spmilp.plan.write import FORMAT, PLAN_FILE, PROBLEM_FILE, VERSION, PlanFile
from spmilp.problem.problem import Problem
from spmilp.problem.read import problem_from
from spmilp.problem.write import problem_sha256


def read_plan(path: Path | str, problem: Problem | None = None) -> Plan:
    """Read a plan. Whether it is valid, the checker decides.

    Parameters
    ----------
    problem
        The problem that it answers, if it is known.

    Raises
    ------
    FileError
        If the file cannot be read, breaks the format, or answers another problem.
    """
    return _plan_from(path, read_bytes(path), problem)


def open_pair(path: Path, problem_file: Path | None = None) -> tuple[Problem, Plan]:
    """Read a plan and its problem, by default the ``problem.json`` beside it.

    Parameters
    ----------
    path
        Of the plan, or of the folder whose ``plan.json`` it is.

    Raises
    ------
    FileError
        If one cannot be read, or the plan was made for another problem.
    """
    plan_file = path / PLAN_FILE if path.is_dir() else path
    beside = problem_file or plan_file.with_name(PROBLEM_FILE)
    if not plan_file.exists():
        raise FileError(f"{plan_file}: no such file")
    if not beside.exists():
        raise FileError(
            f"{beside}: no such file; a plan is read with its problem: name it with --problem"
        )
    content = read_bytes(beside)
    problem = problem_from(beside, content)
    return problem, _plan_from(plan_file, read_bytes(plan_file), problem, sha256_of(content))


@collector_paused()
def _plan_from(path: Path | str, data: bytes, problem: Problem | None, beside: str = "") -> Plan:
    """Return the plan of a file; ``beside`` is the SHA-256 of its problem's file, where known."""
    file = read_document(path, data, PlanFile, FORMAT, VERSION)
    # Versions before had fields for readers of the file alone: names, addresses and the like.
    tolerant = version_numbers(path, file.format_version) != version_numbers(path, VERSION)
    refuse_odd_fields(path, data, PlanFile, tolerant=tolerant)
    for position, tensor in enumerate(file.tensors):
        if tensor.index != position:
            raise FileError(f"{path}: tensors.{position}.index: {tensor.index}, not {position}")
    named = file.meta.problem_sha256
    # The problem's file mostly is as we would write it, and has the hash that a plan names.
    is_beside = named in ("", beside)
    if problem and not is_beside and named != (expected := problem_sha256(problem)):
        raise FileError(
            f"{path}: meta.problem_sha256: the plan was made for another problem: it names "
            f"{named[:64]}, and {problem.name} has {expected}"
        )
    solve = file.solve
    return Plan(
        placements=tuple(
            Placement(
                task=row.index,
                core=row.core,
                start=row.start,
                end=row.start + row.cycles,
                reads=row.reads,
                writes=row.writes,
                scratch=row.scratch,
            )
            for row in file.tasks
        ),
        residencies=file.residencies,
        transfers=tuple(
            Transfer(
                index=row.index,
                slice=row.slice,
                source=row.source,
                destinations=row.destinations,
                engine=row.engine,
                channel=row.channel,
                start=row.start,
                end=row.start + row.cycles,
                route=row.route,
            )
            for row in file.transfers
        ),
        tensors=tuple(tensor.address for tensor in file.tensors),
        claim=msgspec.convert(solve, Claim, from_attributes=True),
        solver=solve.solver,
        options=solve.options,
        problem_sha256=named,
    )
