"""The problem of a row, and its statistics before anything is solved."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path

from spmilp.bench.generated import generated_problem
from spmilp.bench.kinds import character_of
from spmilp.bench.suite import Built, Generated, ModelOnMachine, ProblemFile, Source
from spmilp.bounds.roofline import roofline
from spmilp.errors import MissingDataError, SpmilpError
from spmilp.files import sha256_of
from spmilp.frontend.find import find_model
from spmilp.machine.read import load_machine, machine_bytes
from spmilp.pipeline import tiled_problem
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.problem.write import problem_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemStatistics:
    """Statistics of a row's problem, for tables.

    Parameters
    ----------
    problem_sha256
        Of its ``problem.json``.
    quantity
        What is minimised.
    kind, tight, work, traffic, pressure
        See :class:`~spmilp.bench.kinds.Character`.
    roofline
        Cycles that no plan of any tiling of the network is below; ``None`` where only the problem
        is known, and for other quantities than the makespan.
    """

    problem_sha256: str
    quantity: str
    tasks: int
    cores: int
    kind: str
    tight: bool
    work: int
    traffic: int
    pressure: float
    roofline: int | None


def make_problem(
    source: Source, objective: Quantity | None, data: Path | None
) -> tuple[Problem, int | None]:
    """Return the problem of a row, and the roofline of its network if there is one.

    Raises
    ------
    MissingDataError
        If it is made from data that is not there.
    SpmilpError
        If it cannot be made for another reason.
    """
    if isinstance(source, ModelOnMachine):
        # The limit of the search is in tasks and not in seconds: the same tiles each time.
        tiled, origin = tiled_problem(
            source.model,
            load_machine(source.machine, source.scale),
            dim=dict(source.dims),
            objective=objective,
            tiles=source.tiles,
        )
        problem = tiled.problem
        if origin is None or problem.objective.first is not Quantity.MAKESPAN:
            return problem, None
        return problem, roofline(origin.network, problem.machine).cycles
    made = _without_network(source, data)
    if objective is not None:
        made = replace(made, objective=Objective.of(objective))
    return made, None


def statistics_of(problem: Problem, ceiling: int | None) -> tuple[ProblemStatistics, str]:
    """Return the statistics of a problem, and its ``problem.json``."""
    text = problem_text(problem)
    character = character_of(problem)
    statistics = ProblemStatistics(
        problem_sha256=sha256_of(text.encode()),
        quantity=str(problem.objective.first),
        tasks=len(problem.tasks),
        cores=len(problem.machine.cores),
        kind=str(character.kind),
        tight=character.tight,
        **asdict(character),
        roofline=ceiling,
    )
    return statistics, text


def files_behind(source: Source) -> Callable[[], Iterator[str]] | None:
    """Return a function that lists the hashes of the files that a row's problem is made from.

    ``None`` where they are not known before it is made.
    """
    if isinstance(source, Built):
        return None

    def hashes() -> Iterator[str]:
        if isinstance(source, ProblemFile):
            yield sha256_of(source.path)
        elif isinstance(source, ModelOnMachine):
            yield sha256_of(find_model(source.model))
            yield sha256_of(machine_bytes(source.machine))

    return hashes


def _without_network(source: ProblemFile | Generated | Built, data: Path | None) -> Problem:
    if isinstance(source, ProblemFile):
        return read_problem(source.path)
    if isinstance(source, Generated):
        return generated_problem(source.tasks, source.cores, source.seed)
    if source.name not in BUILDERS:
        known = ", ".join(BUILDERS) or "none"
        raise SpmilpError(f"no builder is called {source.name!r}; there are {known}")
    if data is None:
        raise MissingDataError("it is made from data; say where with --data FOLDER")
    return BUILDERS[source.name](data)


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
"""For ``builder: NAME`` in a suite: the function that makes the problem from ``--data FOLDER``.

The function raises ``MissingDataError`` when a file that it needs is not in the folder. It must
give the same problem each time.
"""
