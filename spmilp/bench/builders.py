"""Problems that are made by a function from data in a folder, by the names that suites use."""

from collections.abc import Callable
from pathlib import Path

from spmilp.problem.problem import Problem


def _stream_2conv(data: Path) -> Problem:
    from spmilp.bench.peers.stream import two_convolutions

    return two_convolutions(data)


def _stream_2conv_without_port(data: Path) -> Problem:
    from spmilp.bench.peers.stream import two_convolutions_without_port

    return two_convolutions_without_port(data)


def _stream_resnet18(data: Path) -> Problem:
    from spmilp.bench.peers.stream import resnet18

    return resnet18(data)


def _stream_resnet18_half_speed(data: Path) -> Problem:
    from spmilp.bench.peers.stream import resnet18_at_half_speed

    return resnet18_at_half_speed(data)


def _set_resnet50(data: Path) -> Problem:
    from spmilp.bench.peers.set_mesh import resnet50_on_mesh

    return resnet50_on_mesh(data)


BUILDERS: dict[str, Callable[[Path], Problem]] = {
    "stream-2conv": _stream_2conv,
    "stream-2conv-without-port": _stream_2conv_without_port,
    "stream-resnet18": _stream_resnet18,
    "stream-resnet18-half-speed": _stream_resnet18_half_speed,
    "set-resnet50": _set_resnet50,
}
"""For ``builder: NAME`` in a suite, what makes the problem from the folder given by ``--data``.

The function raises ``MissingDataError`` when a file that it needs is not in the folder. It must
give the same problem each time.
"""
