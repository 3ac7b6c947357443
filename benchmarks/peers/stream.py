"""Stream's quad-core and two of the networks that it ships with.

Stream (KULeuven-MICAS/stream, MIT licence) describes the machine as ``tpu_like_quad_core``; the
preset ``stream_quad`` holds the same numbers. Its versions model it in two ways: 2.1.1 with
DRAM's port of 64 bit per cycle, 1.13.14 with the bus of 128 bit alone.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, prod
from pathlib import Path

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Network
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.schedule.portfolio import schedules_by
from spmilp.source import load
from spmilp.tile_selection.first_choice import NetworkOnMachine, first_choice_of
from spmilp.tile_selection.refine import Trials, refine_tilings
from spmilp.tile_selection.tiled_problem import Worth
from spmilp.units import Cycles

MACHINE = "stream_quad"
TWO_CONVOLUTIONS = "stream/workload/2conv_1_8_32_32_16_32_3.onnx"
RESNET18 = "stream/workload/resnet18.onnx"

BUS_RATE = Fraction(16)
"""Bytes per cycle of the bus that all cores and DRAM share."""

SLOTS = {"Conv1": 2376, "Conv2": 4656}
"""Cycles of the two slots in which Stream 1.13.14 computes these nodes, on four cores each."""

MATRIX_CORES = 4


class MissingDataError(SpmilpError):
    """The data that a problem is made from is not there; its row is skipped."""


def two_convolutions(data: Path) -> Problem:
    """Two convolutions in float16, by the rules of Stream 2.1.1."""
    network, target = _load(data, TWO_CONVOLUTIONS)
    return lowered(network, target.machine, sources=_sources(network, target))


def two_convolutions_without_port(data: Path) -> Problem:
    """Two convolutions by the rules of Stream 1.13.14, with its own cycles.

    The cycles of its slots count on each of the four matrix cores, and a tile's share of them
    counts by its elements, rounded up.
    """
    network, target = _load(data, TWO_CONVOLUTIONS)
    machine = without_port(target.machine)

    def costs(task: Task) -> tuple[Cycles | None, ...]:
        part, whole = share_of(task, network)
        name = task.tile.of if task.tile is not None else task.name
        cycles = ceil(Fraction(SLOTS[name] * MATRIX_CORES * part, whole))
        return tuple(None if count is None else cycles for count in task.cycles)

    return lowered(network, machine, costs, sources=_sources(network, target))


def resnet18(data: Path) -> Problem:
    """ResNet18 in float32 by the rules of Stream 2.1.1."""
    network, target = _load(data, RESNET18)
    return lowered(network, target.machine, sources=_sources(network, target))


def resnet18_at_half_speed(data: Path) -> Problem:
    """The same with every task twice as long: how much the model of cycles matters."""
    network, target = _load(data, RESNET18)

    def costs(task: Task) -> tuple[Cycles | None, ...]:
        return tuple(None if count is None else 2 * count for count in task.cycles)

    return lowered(network, target.machine, costs, sources=_sources(network, target))


def without_port(machine: Machine) -> Machine:
    """Return the quad-core with a DRAM port as wide as the bus, which then limits alone."""
    links = [
        replace(link, rate=BUS_RATE) if "dram" in link.source + link.target else link
        for link in machine.links
    ]
    return replace(machine, name=f"{machine.name}_without_port", links=tuple(links))


def _load(data: Path, name: str) -> tuple[Network, MachineFile]:
    file = data / name
    if not file.exists():
        raise MissingDataError(f"{name} is not in {data}")
    return load(file, MACHINE)


def _sources(network: Network, target: MachineFile) -> tuple[tuple[str, str], ...]:
    return (("model", network.sha256), ("machine", target.sha256))


Costs = Callable[[Task], tuple[Cycles | None, ...]]
"""Cycles of a task on each kind of core, instead of those of the cost model."""

MOST_TASKS_EVALUATED = 40_000


def lowered(
    network: Network,
    machine: Machine,
    costs: Costs | None = None,
    *,
    sources: tuple[tuple[str, str], ...] = (),
) -> Problem:
    """Return the problem of a network with tile sizes found by search.

    As ``spmilp solve --tiles search`` does it: the first choice, then others that the list
    scheduler evaluates, until a number of tasks has been evaluated; no clock is read.

    Parameters
    ----------
    costs
        What tasks cost, for the search, too; ``None`` for the cost model.
    sources
        ``(what, SHA-256)`` of the files that it comes from.
    """

    def adjusted(problem: Problem) -> Problem:
        return problem if costs is None else with_costs(problem, costs)

    left = MOST_TASKS_EVALUATED

    def worth_of(problem: Problem) -> Worth | None:
        nonlocal left
        left -= len(problem.tasks)
        made = schedules_by(adjusted(problem))
        return min(((one.score[0],) for one in made), default=None)

    first = first_choice_of(NetworkOnMachine(network=network, machine=machine, sources=sources))
    trials = Trials(first.lower, worth_of, is_over=lambda: left <= 0)
    return adjusted(first.lower(refine_tilings(first, trials)))


def with_costs(problem: Problem, costs: Costs) -> Problem:
    """Return a problem whose tasks take other cycles."""
    tasks = (replace(task, cycles=costs(task)) for task in problem.tasks)
    return replace(problem, tasks=tuple(tasks))


def share_of(task: Task, network: Network) -> tuple[int, int]:
    """Return a task's share of its group, in elements of the output: ``part, whole``."""
    if task.tile is None:
        return 1, 1
    group = next(group for group in network.groups if group.name == task.tile.of)
    whole = prod(network.tensors[group.output].shape)
    return prod(stop - start for start, stop in task.tile.box), whole
