"""Reading a plan that is to be shown: it must be valid, and its log may lie beside it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spmilp.result import Result

LOG = "log.jsonl"
"""The log of a search, beside its plan."""


def read_valid_plan(plan: Path, problem: Path | None, log: Path | None) -> "Result":
    """Read a plan with its problem, and the log of its search where there is one.

    Raises
    ------
    InvalidPlanError
        If the checker rejects it.
    FileError
        If a file cannot be read.
    """
    from spmilp.export.errors import InvalidPlanError
    from spmilp.result import read

    beside = folder_of(plan) / LOG
    result = read(plan, problem=problem, log=log or (beside if beside.exists() else None))
    if result.violations:
        raise InvalidPlanError(result.violations, "shown")
    return result


def folder_of(plan: Path) -> Path:
    """Return the folder in which a plan lies, be it the folder itself that is given."""
    return plan if plan.is_dir() else plan.parent
