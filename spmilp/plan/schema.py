"""The JSON Schema of plan files; ``python -m spmilp.plan.schema`` writes the file."""

from pathlib import Path

from spmilp.files import write_atomically
from spmilp.plan.model import PlanModel
from spmilp.problem.documents import schema_text

PUBLISHED = Path(__file__).with_name("plan.schema.json")


def plan_schema() -> str:
    """Return the JSON Schema of ``plan.json`` as text."""
    return schema_text(PlanModel, "spmilp plan")


if __name__ == "__main__":
    write_atomically(PUBLISHED, plan_schema())
