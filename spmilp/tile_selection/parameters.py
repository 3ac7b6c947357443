"""Which way an estimate of tilings leans where it can only guess."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

HIDDEN = 0.1
"""What is expected to be hidden behind something longer counts with this weight: it competes for
channels and links, and is rarely hidden in full."""

CROWDED = 0.5
"""A working set of more than this part of what live tensors leave of a core's memory has no room
beside it for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaning:
    """What an estimate makes of what it cannot know, such as when a transfer finds its link busy.

    Parameters
    ----------
    hidden
        Weight of what is expected to be hidden behind something longer.
    crowded
        The part of a core's memory from which on tasks and transfers are taken to take turns.
    dram, exchange
        How many times as long as its rate says it takes DRAM to send, and the links between
        scratchpads to pass on.
    ahead
        The part of the free room that DRAM fills ahead of its use.
    wait
        How many set-ups of a transfer from DRAM a core waits for at each of its tiles.
    """

    hidden: float = HIDDEN
    crowded: float = CROWDED
    dram: float = 1.0
    exchange: float = 1.0
    ahead: float = 1.0
    wait: float = 0.0

    def nearby(self) -> Iterator["Leaning"]:
        """Yield those that differ by one step of one parameter."""
        for name, ladder in LADDERS.items():
            place = ladder.index(getattr(self, name))
            for step in (place + 1, place - 1):
                if 0 <= step < len(ladder):
                    yield replace(self, **{name: ladder[step]})


LADDERS = {
    "hidden": (0.03, HIDDEN, 0.3, 1.0),
    "crowded": (0.25, 0.33, CROWDED, 1.0),
    "dram": (0.5, 1.0, 2.0),
    "exchange": (1.0, 2.0, 4.0),
    "ahead": (0.0, 0.3, 1.0),
    "wait": (0.0, 0.5, 2.0),
}
"""The values that each parameter may have, in order."""

USUAL = Leaning()

OTHERS = (
    Leaning(hidden=0.3, crowded=0.33),
    Leaning(hidden=0.3, exchange=2.0),
    Leaning(dram=0.5),
    Leaning(ahead=0.3),
    Leaning(wait=2.0),
    Leaning(hidden=0.3),
    Leaning(hidden=1.0),
    Leaning(hidden=0.03),
    Leaning(crowded=0.33),
)
"""Different enough from the usual one, and from each other, to begin with."""
