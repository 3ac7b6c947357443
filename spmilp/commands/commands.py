"""What firmware runs: one list of commands for each core and each DMA channel, without times.

``docs/commands.md`` says what each command does and who runs which list.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TypeAlias

from spmilp.units import CoreIdx, EngineIdx, TaskIdx, TransferIdx

EventIdx: TypeAlias = int


class EventScheme(StrEnum):
    """What an event is. All events are 0 at the start, and a signal adds 1 in either scheme.

    ``counters``
        A wait goes on when the event has reached ``count``, and leaves it as it is. One list
        signals an event, any number of lists may wait for it: a word of memory with one writer.
    ``semaphores``
        A wait goes on when the event is at least ``count`` and takes that many off it. Several
        lists may signal an event, and several wait for it, though never two at the same time: a
        list comes to its wait when the one before it is over.
    """

    COUNTERS = "counters"
    SEMAPHORES = "semaphores"


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on when event ``event`` has reached ``count``."""

    event: EventIdx
    count: int


@dataclass(frozen=True, slots=True)
class LoopWait:
    """In a turn of a loop, go on when event ``event`` has reached ``count`` of an earlier turn.

    That is the turn ``back`` turns before: in turn ``j``, counted from 0, it waits until the event
    has reached ``count`` and what is signalled in ``j - back`` turns; for nothing if that is less
    than 0. The event counts on from turn to turn; of a semaphore it takes ``count`` instead.
    """

    event: EventIdx
    count: int
    back: int


@dataclass(frozen=True, slots=True)
class Signal:
    """Add 1 to event ``event``, after everything before it in the list has completed."""

    event: EventIdx


@dataclass(frozen=True, slots=True)
class Run:
    """Run a task to its end; in the list of the task's core."""

    task: TaskIdx


@dataclass(frozen=True, slots=True)
class Move:
    """Move the data of a transfer; in the list of the transfer's engine and channel."""

    transfer: TransferIdx


Command: TypeAlias = Wait | Signal | Run | Move
LoopCommand: TypeAlias = LoopWait | Signal | Run | Move


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCommands:
    """What a core does, one command after the other: ``Wait``, ``Run`` and ``Signal``."""

    core: CoreIdx
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelCommands:
    """What a channel of a DMA engine does, in order: ``Wait``, ``Move`` and ``Signal``.

    Whoever drives the channel (its descriptor queue, a core for data movement, an interrupt
    handler) starts each transfer when the waits before it are over and the transfer before it has
    arrived or, if the engine is pipelined, has sent its bytes; or queues it behind that one. A
    signal takes effect when all transfers before it have arrived.
    """

    engine: EngineIdx
    channel: int
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLists:
    """A plan without times.

    There is one list for each core of the machine, in order, and one for each channel, by engine
    and then by channel; those are empty where nothing is to do. Events are numbered from 0.
    """

    cores: tuple[CoreCommands, ...]
    channels: tuple[ChannelCommands, ...]
    events: int
    scheme: EventScheme = EventScheme.COUNTERS

    @property
    def lists(self) -> tuple[CoreCommands | ChannelCommands, ...]:
        """All lists: those of the cores, then those of the channels."""
        return (*self.cores, *self.channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCommands:
    """A stream without times: a prologue, at whose end all wait for all of it, and then a loop.

    ``body`` has the lists of the cores, two of the application, and those of the channels; so has
    the prologue, where those of tasks are empty. Tasks and transfers have their numbers in the
    plan; the two tasks behind these fill the inputs of an inference, and take its outputs. In turn
    ``j`` of the loop what has stage ``s`` works for inference ``j - s``, at the addresses of that;
    its work, but not its waits and signals, is left out while there is no such inference. The
    loop has events of its own, which are counted with those of the prologue; semaphores are those
    of both. These never hold more than ``highest`` signals, however long the loop goes on.
    """

    prologue: CommandLists
    body: tuple[tuple[LoopCommand, ...], ...]
    task_stages: tuple[int, ...]
    transfer_stages: tuple[int, ...]
    highest: int | None = None

    @property
    def last_stage(self) -> int:
        """How many turns an inference goes on for beyond its first."""
        return max(*self.task_stages, *self.transfer_stages, 0)

    def stage(self, command: Run | Move) -> int:
        """Return how many turns later than its inference begins something is done."""
        if isinstance(command, Run):
            return self.task_stages[command.task]
        return self.transfer_stages[command.transfer]

    def signals_of_a_turn(self) -> tuple[int, ...]:
        """Return how far each event counts in a turn of the loop."""
        found = [0] * self.prologue.events
        for command in chain.from_iterable(self.body):
            if isinstance(command, Signal):
                found[command.event] += 1
        return tuple(found)
