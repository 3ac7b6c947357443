"""Problems that are made by a function from data in a folder, by the names that suites use."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from spmilp.problem.problem import Problem

_HOMES = {
    "stream-2conv": "stream:two_convolutions",
    "stream-2conv-without-port": "stream:two_convolutions_without_port",
    "stream-resnet18": "stream:resnet18",
    "stream-resnet18-half-speed": "stream:resnet18_at_half_speed",
    "set-resnet50": "set_resnet50:resnet50_on_mesh",
}
"""Module of :mod:`spmilp.bench.peers` and function; a module is imported when it is needed."""


def _builder(name: str) -> Callable[[Path], Problem]:
    def build(data: Path) -> Problem:
        module, _, function = _HOMES[name].partition(":")
        problem: Problem = getattr(import_module(f"spmilp.bench.peers.{module}"), function)(data)
        return problem

    return build


BUILDERS: dict[str, Callable[[Path], Problem]] = {name: _builder(name) for name in _HOMES}
"""For ``builder: NAME`` in a suite, what makes the problem from the folder given by ``--data``.

The function raises ``MissingDataError`` when a file that it needs is not in the folder. It must
give the same problem each time.
"""
