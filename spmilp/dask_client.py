"""Connecting to Dask, which is an extra."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from spmilp.errors import MissingExtraError, SpmilpError

if TYPE_CHECKING:
    from distributed import Client

SECONDS_TO_CONNECT = 10.0


def require_dask(what: str) -> None:
    """Raise :class:`MissingExtraError` if Dask is not installed, which ``what`` needs."""
    if find_spec("distributed") is None:
        raise MissingExtraError(
            f"{what} needs Dask, which is not installed: pip install 'spmilp[sweep]'"
        )


def connected(address: str, seconds: float = SECONDS_TO_CONNECT) -> "Client":
    """Return a connection to a scheduler.

    Raises
    ------
    SpmilpError
        If it does not answer.
    """
    from distributed import Client

    for name in ("distributed", "distributed.client"):  # what is lost is said by those who ask
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return Client(address, timeout=seconds, set_as_default=False, direct_to_workers=False)
    except (OSError, ValueError, TypeError) as error:
        raise SpmilpError(
            f"no Dask scheduler answers at {address} within {seconds:g} s: {error}"
        ) from error
