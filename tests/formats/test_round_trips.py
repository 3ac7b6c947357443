"""What is written is read back equal, byte for byte the same each time, and after its schema."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

import spmilp
from checker.worked_example import MACHINE, PLAN, PROBLEM
from formats.instances import problems
from spmilp.checker.check import check
from spmilp.files import sha256_of
from spmilp.plan.file import plan_bytes, read_plan
from spmilp.problem.file import problem_bytes, problem_sha256, read_problem, write_problem
from spmilp.problem.problem import Problem, Task

INSTANCES = Path(__file__).parents[2] / "instances"


def _schema(name: str) -> jsonschema.Draft202012Validator:
    text = (Path(spmilp.__file__).parent / name / f"{name}.schema.json").read_text()
    return jsonschema.Draft202012Validator(json.loads(text))


PROBLEM_SCHEMA, PLAN_SCHEMA = _schema("problem"), _schema("plan")


def test_the_worked_example_is_read_back_equal(tmp_path: Path) -> None:
    write_problem(PROBLEM, tmp_path / "problem.json")
    (tmp_path / "plan.json").write_bytes(plan_bytes(PLAN, PROBLEM))
    problem = read_problem(tmp_path / "problem.json")
    plan = read_plan(tmp_path / "plan.json", problem)
    assert problem == PROBLEM
    assert plan == replace(PLAN, problem_sha256=problem_sha256(PROBLEM))
    assert plan.problem_sha256 == sha256_of(tmp_path / "problem.json")
    assert check(problem, plan) == ()
    assert plan_bytes(plan, problem) == plan_bytes(PLAN, PROBLEM)
    lines = plan_bytes(PLAN, PROBLEM).decode().splitlines()
    assert sum(line.startswith('    {"index": ') for line in lines) == 2 + 5 + 23 + 13


@pytest.mark.full
@settings(max_examples=80, deadline=None, derandomize=True)
@given(problem=problems())
def test_problems_are_read_back_equal_and_obey_the_schema(
    tmp_path_factory: pytest.TempPathFactory, problem: Problem
) -> None:
    file = tmp_path_factory.mktemp("files") / "problem.json"
    write_problem(problem, file)
    assert read_problem(file) == problem
    PROBLEM_SCHEMA.validate(json.loads(file.read_bytes()))


def test_files_of_the_instances_obey_the_schema_and_are_written_back_alike() -> None:
    for path in sorted((INSTANCES / "problems").glob("*.json"))[::10]:
        PROBLEM_SCHEMA.validate(json.loads(path.read_bytes()))
        assert problem_bytes(read_problem(path)) == path.read_bytes()


def test_plans_of_the_conformance_suite_are_read_back_equal(tmp_path: Path) -> None:
    cases = json.loads((INSTANCES / "conformance" / "index.json").read_text())["cases"]
    for case in [case for case in cases if case["verdict"] != "refused"][::4]:
        problem = read_problem(INSTANCES / "conformance" / case["problem"])
        plan = read_plan(INSTANCES / "conformance" / case["plan"], problem)
        (tmp_path / "plan.json").write_bytes(plan_bytes(plan, problem))
        assert read_plan(tmp_path / "plan.json") == replace(
            plan, problem_sha256=problem_sha256(problem)
        )
        PLAN_SCHEMA.validate(json.loads((tmp_path / "plan.json").read_bytes()))


def test_what_does_not_fit_the_format_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="answers a problem of SHA-256 0123"):
        (tmp_path / "plan.json").write_bytes(
            plan_bytes(replace(PLAN, problem_sha256="0123"), PROBLEM)
        )
    long = Problem(name="p", machine=MACHINE, tasks=(Task(index=0, name="t", cycles=(2**50, 1)),))
    with pytest.raises(ValueError, match=r"tasks\.0\.cycles\.0.*1125899906842624"):
        write_problem(long, tmp_path / "problem.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "number", "fields", "message"),
    [
        ("residencies", 3, {"offset": -64}, r"residencies\.3\.offset: expected int >= 0; got -64"),
        ("residencies", 2, {"slice": 2**50}, r"residencies\.2\.slice: .*; got 1125899906842624"),
        ("transfers", 4, {"channel": "0"}, r"transfers\.4\.channel: .*got '0'"),
    ],
)
def test_a_field_that_the_format_cannot_hold_is_named(
    table: str, number: int, fields: dict[str, Any], message: str
) -> None:
    rows = list(getattr(PLAN, table))
    rows[number] = replace(rows[number], **fields)
    with pytest.raises(ValueError, match=message):
        plan_bytes(replace(PLAN, **{table: tuple(rows)}), PROBLEM)


def test_names_beyond_ascii_are_escaped(tmp_path: Path) -> None:
    odd = replace(PROBLEM, name='\u00e4\x7f\u20ac\U0001f600\n"')
    write_problem(odd, tmp_path / "problem.json")
    text = (tmp_path / "problem.json").read_bytes()
    assert b'"\\u00e4\\u007f\\u20ac\\ud83d\\ude00\\n\\""' in text
    assert read_problem(tmp_path / "problem.json") == odd
