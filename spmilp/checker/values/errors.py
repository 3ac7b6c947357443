"""Errors of the value replay."""

from spmilp.errors import ExitCode, SpmilpError


class ReplayError(SpmilpError):
    """A plan does not compute: it reads bytes that are not there, or loses them."""

    exit_code = ExitCode.PLAN_INVALID


class ValuesError(SpmilpError):
    """A replay or comparison is impossible: values are missing, or not those of the network."""
