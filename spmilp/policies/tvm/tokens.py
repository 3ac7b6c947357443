"""Queues of instructions that take and give tokens, run on a machine's channels and links.

T. Chen et al., "TVM", OSDI 2018, section 4.4: the stages of a decoupled access-execute pipeline run
their instructions in order, each as soon as the tokens that it takes are there.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from typing import TypeAlias

from spmilp.machine.machine import Machine
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, EngineIdx, LinkIdx

Token: TypeAlias = Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One step of a stage.

    Parameters
    ----------
    about
        What it is a part of.
    transfer
        What moves, with the resources that it holds meanwhile; ``None`` for a computation.
    takes
        Tokens that it waits for, and takes away.
    needs
        Tokens that it waits for and leaves: data that several instructions read.
    gives
        Tokens that are there once it has ended.
    """

    name: str
    cycles: Cycles = 0
    about: Hashable = None
    transfer: TransferOption | None = None
    takes: tuple[Token, ...] = ()
    needs: tuple[Token, ...] = ()
    gives: tuple[Token, ...] = ()


class DeadlockError(RuntimeError):
    """Instructions are left that wait for tokens which nothing gives."""


@dataclass
class _Resources:
    """Free channels of engines, and what is free of links in bytes per cycle."""

    machine: Machine
    channels: dict[EngineIdx, int] = field(default_factory=dict)
    rates: dict[LinkIdx, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.channels = {engine.index: engine.channels for engine in self.machine.engines}
        self.rates = {link.index: link.rate for link in self.machine.links}

    def has_room_for(self, transfer: TransferOption | None) -> bool:
        return transfer is None or (
            self.channels[transfer.engine] > 0
            and all(self.rates[link] >= transfer.rate for link in transfer.links)
        )

    def change(self, transfer: TransferOption | None, sign: int) -> None:
        if transfer is not None:
            self.channels[transfer.engine] += sign
            for link in transfer.links:
                self.rates[link] += sign * transfer.rate


def replay(
    machine: Machine,
    queues: Sequence[Sequence[Instruction]],
    given: Sequence[Token],
    go_on: Callable[[], None] = lambda: None,
) -> list[list[Cycles]]:
    """Return when each instruction of each queue starts.

    At each cycle at which something ends, the first instruction of every queue is tried, queue by
    queue.

    Parameters
    ----------
    given
        Tokens that are there at the start, each as often as it is named.
    go_on
        Called whenever something has ended; what it raises passes on.

    Raises
    ------
    DeadlockError
        If instructions are left that can never start; the message names the first of each queue.
    """
    resources, tokens = _Resources(machine), Counter(given)
    starts: list[list[Cycles]] = [[] for _ in queues]
    running: list[tuple[Cycles, int, int]] = []
    busy = [False] * len(queues)
    now: Cycles = 0

    def may_start(one: Instruction) -> bool:
        wanted = Counter(one.takes)
        return (
            all(tokens[token] >= count for token, count in wanted.items())
            and all(tokens[token] > 0 for token in one.needs)
            and resources.has_room_for(one.transfer)
        )

    while True:
        for number, queue in enumerate(queues):
            position = len(starts[number])
            if not busy[number] and position < len(queue) and may_start(queue[position]):
                one = queue[position]
                tokens.subtract(one.takes)
                resources.change(one.transfer, -1)
                starts[number].append(now)
                busy[number] = True
                heappush(running, (now + one.cycles, number, position))
        if not running:
            break
        go_on()
        now = running[0][0]
        while running and running[0][0] == now:
            _, number, position = heappop(running)
            ended = queues[number][position]
            resources.change(ended.transfer, 1)
            tokens.update(ended.gives)
            busy[number] = False
    left = [
        f"{queue[len(done)].name} waits for {_missing(queue[len(done)], tokens)}"
        for queue, done in zip(queues, starts, strict=True)
        if len(done) < len(queue)
    ]
    if left:
        raise DeadlockError("; ".join(left))
    return starts


def _missing(one: Instruction, tokens: Counter[Token]) -> str:
    wanted = Counter((*one.takes, *one.needs))
    return ", ".join(str(token) for token, count in wanted.items() if tokens[token] < count)
