"""Reads ``plan.json``, alone or with its problem."""

import json
from pathlib import Path
from typing import Any

from spmilp.commit import place_of
from spmilp.errors import FileError
from spmilp.files import read_bytes, read_together
from spmilp.plan.model import (
    FORMAT,
    VERSION,
    PlanModel,
    ResidencyModel,
    SolveModel,
    TaskModel,
    TransferModel,
)
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Transfer
from spmilp.plan.write import PLAN_FILE, PROBLEM_FILE, plan_document
from spmilp.problem.documents import (
    as_text,
    collector_paused,
    read_document,
    refuse_repeated_fields,
)
from spmilp.problem.problem import Problem
from spmilp.problem.read import problem_from
from spmilp.problem.write import problem_sha256

_NOT_READ = {"tool", "tool_version", "gap", "format_version"}
"""Fields that say nothing of the plan."""


def read_plan(path: Path | str, problem: Problem | None = None) -> Plan:
    """Read a plan. Whether it is valid, the checker decides.

    Parameters
    ----------
    problem
        The problem that it answers. With it, the derived fields that the file has (names,
        addresses, strides and the like) must be what follows from the others; without it, they are
        not looked at.

    Raises
    ------
    FileError
        If the file cannot be read, breaks the format, answers another problem, or contradicts
        itself.
    """
    return _plan_from(path, read_bytes(path), problem)


@collector_paused()
def _plan_from(path: Path | str, data: bytes, problem: Problem | None) -> Plan:
    plan = _plan(path, read_document(path, data, PlanModel, FORMAT, VERSION))
    if problem is None:
        refuse_repeated_fields(path, data)
    else:
        _answers(path, plan, problem)
        _agrees(path, data, plan, problem)
    return plan


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
    if not place_of(plan_file).exists():
        raise FileError(f"{plan_file}: no such file")
    if not place_of(beside).exists():
        raise FileError(
            f"{beside}: no such file; a plan is read with its problem: name it with --problem"
        )
    problem_data, plan_data = read_together([beside, plan_file])
    problem = problem_from(beside, problem_data)
    return problem, _plan_from(plan_file, plan_data, problem)


def _plan(path: Path | str, model: PlanModel) -> Plan:
    for position, tensor in enumerate(model.tensors):
        if tensor.index != position:
            raise FileError(f"{path}: tensors.{position}.index: {tensor.index}, not {position}")
    return Plan(
        placements=tuple(map(_placement, model.tasks)),
        residencies=tuple(map(_residency, model.residencies)),
        transfers=tuple(map(_transfer, model.transfers)),
        tensors=tuple(tensor.address for tensor in model.tensors),
        claim=_claim(model.solve),
        solver=model.solve.solver,
        options=model.solve.options,
        problem_sha256=model.meta.problem_sha256,
    )


def _placement(model: TaskModel) -> Placement:
    return Placement(
        task=model.index,
        core=model.core,
        start=model.start,
        end=model.start + model.cycles,
        reads=model.reads,
        writes=model.writes,
        scratch=model.scratch,
    )


def _residency(model: ResidencyModel) -> Residency:
    return Residency(
        index=model.index,
        slice=model.slice,
        memory=model.memory,
        offset=model.offset,
        bytes=model.bytes,
        start=model.start,
        end=model.end,
        filled_by_task=model.filled_by_task,
        filled_by_transfer=model.filled_by_transfer,
    )


def _transfer(model: TransferModel) -> Transfer:
    return Transfer(
        index=model.index,
        slice=model.slice,
        source=model.source,
        destinations=model.destinations,
        engine=model.engine,
        channel=model.channel,
        start=model.start,
        end=model.start + model.cycles,
        route=model.route,
    )


def _claim(model: SolveModel) -> Claim:
    return Claim(
        makespan=model.makespan,
        dram_traffic=model.dram_traffic,
        energy=model.energy,
        peak_spm=model.peak_spm,
        bound=model.bound,
        bound_source=model.bound_source,
    )


def _answers(path: Path | str, plan: Plan, problem: Problem) -> None:
    expected = problem_sha256(problem)
    if plan.problem_sha256 and plan.problem_sha256 != expected:
        raise FileError(
            f"{path}: meta.problem_sha256: the plan was made for another problem: it names "
            f"{plan.problem_sha256[:64]}, and {problem.name} has {expected}"
        )


def _agrees(path: Path | str, data: bytes, plan: Plan, problem: Problem) -> None:
    """Compare what the file states with what would be written; mostly they are the same bytes."""
    expected = as_text(plan_document(plan, problem, plan.problem_sha256))
    if expected.encode() == data:
        return
    refuse_repeated_fields(path, data)
    difference = _difference("", json.loads(data), json.loads(expected))
    if difference is not None:
        where, stated, found = difference
        raise FileError(
            f"{path}: {where}: is {_shown(stated)}, but the other fields and the problem give "
            f"{_shown(found)}; correct the field or leave it out"
        )


def _difference(where: str, stated: Any, expected: Any) -> tuple[str, object, object] | None:
    """Return the first field that is stated otherwise than expected, with both values."""
    if stated is None or stated == expected:
        return None
    if isinstance(stated, dict) and isinstance(expected, dict):
        shared = [name for name in stated if name in expected and name not in _NOT_READ]
        pairs = [(name, stated[name], expected[name]) for name in shared]
    elif isinstance(stated, list) and isinstance(expected, list) and len(stated) == len(expected):
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(stated, expected, strict=True))]
    else:
        return where, stated, expected
    found = (_difference(f"{where}.{name}".lstrip("."), a, b) for name, a, b in pairs)
    return next((difference for difference in found if difference is not None), None)


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
