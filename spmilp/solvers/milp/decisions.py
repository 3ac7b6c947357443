"""What a solution of the model decides, in whole numbers."""

from dataclasses import dataclass

from spmilp.solvers.milp.memory import Key, LateUse
from spmilp.solvers.milp.model import Model
from spmilp.solvers.milp.stays import Stay
from spmilp.solvers.milp.variables import StayVars
from spmilp.units import Bytes, Cycles, EngineIdx, MemoryIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A task in a pool of equal cores during ``[start, end)``."""

    pool: int
    start: Cycles
    end: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A stay that exists.

    Parameters
    ----------
    source, engine
        Of the transfer that fills it, its own or the leader's; ``None`` without a transfer.
    leader
        The stay that a multicast belongs to: itself, unless it rides.
    """

    start: Cycles
    source: Stay | None = None
    engine: EngineIdx | None = None
    leader: Stay | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """A solution.

    Parameters
    ----------
    kept
        For each buffer that must be somewhere at the end, the stay that is there.
    late
        What is used late; without any, the solution is a plan.
    addresses
        In bytes: of what has an address in the model, or, where ``residues`` says so, what the
        address is congruent to.
    """

    runs: tuple[Run, ...]
    stays: dict[Stay, Filled]
    served: dict[tuple[TaskIdx, int], Stay]
    kept: dict[int, Stay]
    in_place: tuple[tuple[TaskIdx, Stay, Stay], ...]
    late: frozenset[Stay]
    addresses: dict[Key, Bytes]


def read_decisions(model: Model, values: dict[int, int]) -> Decisions:
    """Read a solution off whole values."""
    variables = model.variables
    runs = tuple(
        Run(
            pool=next(pool for pool, here in task.pools.items() if here.value(values)),
            start=task.start.value(values),
            end=task.end.value(values),
        )
        for task in variables.tasks
    )
    stays = {
        key: _filled(model, stay, values)
        for key, stay in variables.stays.items()
        if stay.present.value(values)
    }
    served = {}
    for read_key, read in variables.reads.items():
        for server, found in (*read.on.items(), *read.late.items()):
            if found.value(values):
                served[read_key] = server.stay
    return Decisions(
        runs=runs,
        stays=stays,
        served=served,
        kept=_kept(model, stays, values),
        in_place=tuple(pair for pair, found in variables.in_place.items() if found.value(values)),
        late=frozenset(stay for stay, found in variables.late() if found.value(values)),
        addresses={
            key: model.lookup.machine.memories[_memory_of(model, key)].alignment
            * offset.value(values)
            for key, offset in model.room.offsets.items()
        },
    )


def _filled(model: Model, stay: StayVars, values: dict[int, int]) -> Filled:
    start, key = stay.start.value(values), stay.shape.stay
    for fill, found in stay.transfers():
        if found.value(values):
            return Filled(start=start, source=fill.source, engine=fill.way.engine, leader=key)
    for ride, rides in stay.rides.items():
        if rides.value(values):
            leader = _filled(model, model.variables.stays[ride.leader], values)
            return Filled(
                start=leader.start,
                source=leader.source,
                engine=leader.engine,
                leader=ride.leader,
            )
    return Filled(start=start)


def _kept(model: Model, stays: dict[Stay, Filled], values: dict[int, int]) -> dict[int, Stay]:
    """Return, for each buffer with an end, the stay that lasts until then."""
    found: dict[int, Stay] = {}
    for buffer in model.lookup.problem.buffers:
        if buffer.ends_in is None:
            continue
        for key in model.structure.of(buffer.index, buffer.ends_in):
            kept = model.variables.kept[key]
            if key in stays and kept.value(values):
                found[buffer.index] = key
    return found


def _memory_of(model: Model, key: Key) -> MemoryIdx:
    if isinstance(key, int):
        return model.lookup.problem.tensors[key].memory
    return key.stay.memory if isinstance(key, LateUse) else key.memory
