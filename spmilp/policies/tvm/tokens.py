"""Queues of instructions that take and give tokens, run on a machine's channels and links.

T. Chen et al., "TVM", OSDI 2018, section 4.4: the stages of a decoupled access-execute pipeline run
their instructions in order, each as soon as the tokens that it takes are there.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import lcm
from typing import TypeAlias

from spmilp.machine.machine import Machine
from spmilp.solvers.formulation.tables import TransferOption
from spmilp.units import Cycles

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
        Tokens that it waits for, and takes away: one of each.
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
    return _Replay(machine, queues, given).starts(go_on)


class _Replay:
    """What is there at one cycle: tokens, free channels, what is free of links, what runs.

    A queue whose first instruction cannot start waits for one thing that it lacks, and is tried
    again when there is more of that.
    """

    def __init__(
        self, machine: Machine, queues: Sequence[Sequence[Instruction]], given: Sequence[Token]
    ) -> None:
        self._queues = queues
        self._tokens = Counter(given)
        self._channels = {engine.index: engine.channels for engine in machine.engines}
        # Whole numbers are much quicker than fractions.
        rates = [link.rate for link in machine.links] + [one.rate for one in machine.engines]
        whole = lcm(*(rate.denominator for rate in rates))
        self._rates = {link.index: int(link.rate * whole) for link in machine.links}
        self._rates_of = [
            [0 if one.transfer is None else int(one.transfer.rate * whole) for one in queue]
            for queue in queues
        ]
        self._starts: list[list[Cycles]] = [[] for _ in queues]
        self._running: list[tuple[Cycles, int]] = []
        self._waiting: dict[Hashable, set[int]] = defaultdict(set)

    def starts(self, go_on: Callable[[], None]) -> list[list[Cycles]]:
        now: Cycles = 0
        awake = set(range(len(self._queues)))
        while True:
            for number in sorted(awake):
                self._try(number, now)
            if not self._running:
                break
            go_on()
            now = self._running[0][0]
            awake = set()
            while self._running and self._running[0][0] == now:
                awake |= self._end(heappop(self._running)[1])
        if any(map(self._next, range(len(self._queues)))):
            raise DeadlockError(self._what_is_left())
        return self._starts

    def _next(self, number: int) -> Instruction | None:
        """Return the first instruction of a queue that has not started."""
        queue, done = self._queues[number], len(self._starts[number])
        return queue[done] if done < len(queue) else None

    def _try(self, number: int, now: Cycles) -> None:
        """Start the first instruction of a queue that runs nothing, or let it wait."""
        one = self._next(number)
        if one is None:
            return
        lacking = next(self._lacking(one, number), None)
        if lacking is not None:
            self._waiting[lacking].add(number)
            return
        self._tokens.subtract(one.takes)
        self._starts[number].append(now)
        self._hold(one.transfer, number, -1)
        heappush(self._running, (now + one.cycles, number))

    def _end(self, number: int) -> set[int]:
        """End what a queue runs; return the queues that may be able to start something then."""
        ended = self._queues[number][len(self._starts[number]) - 1]
        self._tokens.update(ended.gives)
        self._hold(ended.transfer, number, 1)
        awake = {number}
        for thing in (*ended.gives, *_held(ended.transfer)):
            awake |= self._waiting.pop(thing, set())
        return awake

    def _lacking(self, one: Instruction, number: int) -> Iterator[Hashable]:
        """Yield what is not there of what the next instruction of a queue takes, needs or holds."""
        yield from (token for token in (*one.takes, *one.needs) if self._tokens[token] <= 0)
        if one.transfer is not None:
            if self._channels[one.transfer.engine] == 0:
                yield "engine", one.transfer.engine
            rate = self._rates_of[number][len(self._starts[number])]
            for link in one.transfer.links:
                if self._rates[link] < rate:
                    yield "link", link

    def _hold(self, transfer: TransferOption | None, number: int, sign: int) -> None:
        """Take or give back what the last started instruction of a queue holds."""
        if transfer is not None:
            self._channels[transfer.engine] += sign
            rate = self._rates_of[number][len(self._starts[number]) - 1]
            for link in transfer.links:
                self._rates[link] += sign * rate

    def _what_is_left(self) -> str:
        return "; ".join(
            f"{one.name} waits for {', '.join(map(str, self._lacking(one, number)))}"
            for number in range(len(self._queues))
            if (one := self._next(number)) is not None
        )


def _held(transfer: TransferOption | None) -> Iterator[Hashable]:
    """Yield the engine and the links of a transfer, as what others wait for."""
    if transfer is not None:
        yield "engine", transfer.engine
        yield from (("link", link) for link in transfer.links)
