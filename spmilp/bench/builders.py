"""Problems that are made by a function from data in a folder, by the names that suites use."""

from collections.abc import Callable
from pathlib import Path

from spmilp.errors import SpmilpError
from spmilp.problem.problem import Problem


class MissingDataError(SpmilpError):
    """The data that a problem is made from is not there; its row of a benchmark is skipped."""


BUILDERS: dict[str, Callable[[Path], Problem]] = {}
"""For ``builder: NAME`` in a suite, what makes the problem from the folder given by ``--data``.

The function raises :class:`MissingDataError` when a file that it needs is not in the folder. It
must give the same problem each time.
"""
