"""Large tables are validated by columns, with the same words as row by row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from checker.worked_example import PLAN, PROBLEM
from formats.instances import plans
from spmilp.plan.model import PlanModel
from spmilp.plan.plan import Plan
from spmilp.plan.write import plan_document, plan_text
from spmilp.problem.documents import Lines, validate_columns

BAD: list[tuple[str, int, dict[str, Any], str]] = [
    ("residencies", 3, {"offset": -64}, r"residencies\.3\.offset: .* equal to 0; got -64"),
    ("residencies", 0, {"bytes": 0}, r"residencies\.0\.bytes: .* equal to 1; got 0"),
    ("residencies", 2, {"slice": 2**50}, r"residencies\.2\.slice: .*; got 1125899906842624"),
    ("residencies", 1, {"filled_by_task": 1.5}, r"residencies\.1\.filled_by_task: .*got 1\.5"),
    ("transfers", 4, {"route": (0, -1)}, r"transfers\.4\.route\.1: .*got -1"),
    ("transfers", 4, {"channel": "0"}, r"transfers\.4\.channel: .*got '0'"),
    ("transfers", 1, {"end": 0}, r"transfers\.1\.cycles: .* equal to 1; got"),
]


@pytest.mark.parametrize(("table", "number", "fields", "message"), BAD)
def test_a_field_that_the_format_cannot_hold_is_named(
    table: str, number: int, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan_text(_with(table, number, fields), PROBLEM)


def test_errors_come_in_the_order_of_rows() -> None:
    plan = _with("residencies", 5, {"offset": -1})
    plan = replace(
        plan, residencies=(replace(plan.residencies[0], start=-1), *plan.residencies[1:])
    )
    with pytest.raises(ValueError, match=r"(?s)residencies\.0\.start.*residencies\.5\.offset"):
        plan_text(plan, PROBLEM)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(plan=plans())
def test_columns_and_rows_are_of_one_mind(plan: Plan) -> None:
    """What the columns let pass, the model of the whole file takes as well."""
    document = plan_document(plan, PROBLEM, "0" * 64)
    for name in ("residencies", "transfers"):
        table = document[name]
        assert isinstance(table, Lines)
        validate_columns(PlanModel, name, table.columns)
    PlanModel.model_validate_json(plan_text(plan, PROBLEM))


def test_a_column_of_another_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="valid integer"):
        validate_columns(PlanModel, "transfers", {"start": [0, True]})


def _with(table: str, number: int, fields: dict[str, Any]) -> Plan:
    rows = list(getattr(PLAN, table))
    rows[number] = replace(rows[number], **fields)
    return replace(PLAN, **{table: tuple(rows)})
