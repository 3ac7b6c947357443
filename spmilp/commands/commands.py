"""What firmware runs: one list of commands for each core and each DMA channel, without times.

``docs/commands.md`` says what each command does and who runs which list.
"""

from dataclasses import dataclass
from enum import StrEnum
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
