"""The JSON Schema of problem files; ``python -m spmilp.problem.schema`` writes it anew."""

from pathlib import Path

from spmilp.files import write_atomically
from spmilp.problem.documents import schema_text
from spmilp.problem.model import ProblemModel

PUBLISHED = Path(__file__).with_name("problem.schema.json")


def problem_schema() -> str:
    """Return the JSON Schema of ``problem.json`` as text."""
    return schema_text(ProblemModel, "spmilp problem")


if __name__ == "__main__":
    write_atomically(PUBLISHED, problem_schema())
