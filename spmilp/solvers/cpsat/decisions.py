"""What a solution of the model decides, as plain integers; read off the solver's values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spmilp.solvers.cpsat.scope import Stay
from spmilp.solvers.cpsat.variables import StayVars, Variables
from spmilp.units import Cycles, EngineIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A task in a pool of cores during ``[start, end)``."""

    pool: int
    start: Cycles
    end: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A stay that exists, with what fills it.

    Parameters
    ----------
    end
        Until when it is kept at least for the sake of the end of the plan; ``None`` for a lasting
        one.
    source, engine
        Of its own transfer; ``None`` otherwise.
    leader
        The stay whose multicast fills it; ``None`` otherwise.
    """

    start: Cycles
    end: Cycles | None
    source: Stay | None
    engine: EngineIdx | None
    leader: Stay | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """A solution.

    Parameters
    ----------
    late
        The stays that are used late; when there are none, the solution is a plan without addresses.
    value
        Of the model's objective.
    """

    runs: tuple[Run, ...]
    stays: dict[Stay, Filled]
    served: dict[tuple[TaskIdx, int], Stay]
    in_place: tuple[tuple[TaskIdx, Stay, Stay], ...]
    late: frozenset[Stay]
    value: int


def read_decisions(variables: Variables, value: Callable[[Any], int], objective: int) -> Decisions:
    """Read a solution; ``value`` gives the value of an expression."""
    tasks = tuple(
        Run(
            pool=next(pool for pool, literal in task.pools.items() if value(literal)),
            start=value(task.start),
            end=value(task.end),
        )
        for task in variables.tasks
    )
    stays = {
        key: _filled(stay, value) for key, stay in variables.stays.items() if value(stay.present)
    }
    served, late = {}, set()
    for read_key, read in variables.reads.items():
        for stay_key, literal in read.on.items():
            if value(literal):
                served[read_key] = stay_key
        for stay_key, literal in read.late.items():
            if value(literal):
                served[read_key] = stay_key
                late.add(stay_key)
    for key in stays:
        late.update(s for s, lit in variables.stays[key].late_arcs.items() if value(lit))
    return Decisions(
        runs=tasks,
        stays=stays,
        served=served,
        in_place=tuple(pair for pair, lit in variables.in_place.items() if value(lit)),
        late=frozenset(late),
        value=objective,
    )


def _filled(stay: StayVars, value: Callable[[Any], int]) -> Filled:
    source = engine = leader = None
    if value(stay.moved):
        families = (*stay.arcs.items(), *stay.late_arcs.items())
        source = next((other for other, literal in families if value(literal)), None)
        engine = next((way.engine for way, literal in stay.moves.items() if value(literal)), None)
    else:
        leader = next((other for other, literal in stay.rides.items() if value(literal)), None)
    return Filled(
        start=value(stay.start),
        end=None if stay.end is None else value(stay.end),
        source=source,
        engine=engine,
        leader=leader,
    )
