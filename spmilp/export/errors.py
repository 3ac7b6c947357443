"""Errors of exports."""

from collections.abc import Sequence

from spmilp.checker.violation import Violation
from spmilp.errors import ExitCode, SpmilpError


class ExportError(SpmilpError):
    """A target's limit is exceeded; the message names the object and both numbers."""

    exit_code = ExitCode.EXPORT_IMPOSSIBLE


class InvalidPlanError(SpmilpError):
    """The plan breaks a rule; ``deed`` says what is therefore not done with it."""

    exit_code = ExitCode.PLAN_INVALID

    def __init__(self, violations: Sequence[Violation], deed: str = "exported") -> None:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        super().__init__(
            f"the plan is invalid and is not {deed}: {first.rule}: {first.message}{more}; "
            "spmilp check lists every violation"
        )
