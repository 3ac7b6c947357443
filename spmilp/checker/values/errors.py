"""What a value replay has to say when it cannot go on."""

from spmilp.errors import ExitCode, SpmilpError


class ReplayError(SpmilpError):
    """A plan does not compute: it reads bytes that are not there, or loses them."""

    exit_code = ExitCode.PLAN_INVALID


class ValuesError(SpmilpError):
    """A replay cannot begin or be judged: values are missing, or are not those of the network."""
