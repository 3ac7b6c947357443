"""The command lists as bits: a symbol says what a command is, and what belongs to it follows."""

from collections.abc import Iterator
from itertools import count

from spmilp.commands.commands import (
    ChannelCommands,
    CommandLists,
    CoreCommands,
    EventScheme,
    Signal,
    Wait,
)
from spmilp.export.packed.bits import Bits
from spmilp.export.packed.codes import PrefixCode
from spmilp.export.packed.templates import Templates

WAIT, SIGNAL, FIRST_TEMPLATE = range(3)
"""Symbols of commands; a task or a transfer has that of its template."""

AFTER_SIGNAL, AFTER_WAIT, AFTER_WORK, EVENT, COUNT, SIGNALLED, CODES = 0, 1, 3, 4, 5, 7, 8
"""Codes: of commands by what is before them in the list (a wait for the event of a core, or for
another one), of events that are waited for, of counts (by the same), of events that are signalled.
Lists of channels have as many of their own behind those of cores."""


WORD = (1 << 32) - 1
"""What the sources multiply wraps around."""


class Commands:
    """The command lists as bits, and own event, number of commands and beginning of each list.

    The own event is the one that a list signals, plus 1; 0 where it signals several. A wait is
    followed by event and count, a signal by its event if the list has no own one, a task or a
    transfer by what fills the holes of its template.

    All lists are about as far at any time: where events count, a wait's count is written as its
    distance from the same share of the event's signals as that of the list's commands before it.
    ``totals`` has the signals of each event, zeros where events do not count.
    """

    def __init__(self, lists: CommandLists, tasks: Templates, transfers: Templates) -> None:
        self._cores = len(lists.cores)
        self.totals = [0] * lists.events
        if lists.scheme is EventScheme.COUNTERS:
            for event in (each.event for one in lists.lists for each in _signals(one)):
                self.totals[event] += 1
        work = (tasks, count()), (transfers, count())
        streams = [
            list(self._symbols(one, *work[number >= self._cores]))
            for number, one in enumerate(lists.lists)
        ]
        written: list[list[int]] = [[] for _ in range(2 * CODES)]
        for number, stream in enumerate(streams):
            for code, value, _ in stream:
                written[code + CODES * (number >= self._cores)].append(value)
        self._codes = list(map(PrefixCode, written))
        self.bits = Bits()
        self.heads: list[tuple[int, int, int]] = []
        for number, (one, stream) in enumerate(zip(lists.lists, streams, strict=True)):
            self.heads.append((_own_event(one), len(one.commands), self.bits.at))
            is_channel = number >= self._cores
            for code, value, row in stream:
                self._codes[code + CODES * is_channel].put(self.bits, value)
                if row is not None:
                    work[is_channel][0].fill(self.bits, row)

    def put_codes(self, bits: Bits) -> list[int]:
        """Append the tables of all codes and return where each begins."""
        starts = []
        for code in self._codes:
            starts.append(bits.at)
            code.put_table(bits)
        return starts

    def _symbols(
        self, one: CoreCommands | ChannelCommands, work: Templates, rows: "count[int]"
    ) -> Iterator[tuple[int, int, int | None]]:
        """Yield code and symbol of all that a list has, and the row that is filled in behind it."""
        own, before = _own_event(one), AFTER_SIGNAL
        for done, command in enumerate(one.commands):
            match command:
                case Wait(event, awaited):
                    is_other = event >= self._cores
                    likely = (self.totals[event] * done & WORD) // len(one.commands)
                    yield before, WAIT, None
                    yield EVENT, event, None
                    yield COUNT + is_other, _folded(awaited - likely), None
                    before = AFTER_WAIT + is_other
                case Signal(event):
                    yield before, SIGNAL, None
                    if not own:
                        yield SIGNALLED, event, None
                    before = AFTER_SIGNAL
                case _:
                    row = next(rows)
                    yield before, FIRST_TEMPLATE + work.number_of(row), row
                    before = AFTER_WORK


def _own_event(one: CoreCommands | ChannelCommands) -> int:
    signalled = {each.event for each in _signals(one)}
    return min(signalled) + 1 if len(signalled) == 1 else 0


def _signals(one: CoreCommands | ChannelCommands) -> Iterator[Signal]:
    return (each for each in one.commands if isinstance(each, Signal))


def _folded(value: int) -> int:
    """Return 0, -1, 1, -2, 2 and so on as 0, 1, 2, 3, 4."""
    return 2 * value if value >= 0 else -2 * value - 1
