"""Parameters of the estimate where it can only guess; other values give other good tilings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

HIDDEN = 0.1
"""Default weight of what is hidden behind something longer: it competes for channels and links, and
is rarely hidden in full."""

OCCUPANCY = 0.5
"""Where half of a working set and of what comes in for the next task is more than this part of what
live tensors leave of a core's memory, there is no space for both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParameters:
    """Guesses about what tilings do not tell, such as when a transfer finds its link busy.

    Parameters
    ----------
    hidden
        Weight of what is expected to be hidden behind something longer.
    occupancy
        Tasks and transfers are taken to alternate where half of a working set and of what comes in
        for the next task occupies more than this part of a core's memory.
    dram, exchange
        How many times as long as its rate says it takes DRAM to send, and the links between
        scratchpads to pass on.
    prefetch
        The part of the free memory that DRAM fills ahead of its use.
    setups
        How many set-ups of a transfer from DRAM a core waits for at each of its tasks.
    room
        The part of a core's memory that a working set may take: what smaller tiles leave free lets
        later operands come early.
    cores
        The part of the cores that groups have tiles for whose tasks would be short if each core had
        one: of fewer and longer tasks, less is to be launched and fewer transfers are to be set up.
    """

    hidden: float = HIDDEN
    occupancy: float = OCCUPANCY
    dram: float = 1.0
    exchange: float = 1.0
    prefetch: float = 1.0
    setups: float = 0.0
    room: float = 1.0
    cores: float = 1.0

    def nearby(self) -> Iterator["CostParameters"]:
        """Yield those that differ by one step of one parameter."""
        for name, values in STEPS.items():
            place = values.index(getattr(self, name))
            for step in (place + 1, place - 1):
                if 0 <= step < len(values):
                    yield replace(self, **{name: values[step]})


STEPS = {
    "hidden": (0.03, HIDDEN, 0.3, 1.0),
    "occupancy": (0.25, 0.33, OCCUPANCY, 1.0),
    "dram": (0.5, 1.0, 2.0),
    "exchange": (1.0, 2.0, 4.0),
    "prefetch": (0.0, 0.3, 1.0),
    "setups": (0.0, 0.5, 2.0),
    "room": (0.2, 0.4, 1.0),
}
"""The values that each parameter may have, in order."""

DEFAULT_PARAMETERS = CostParameters()

ALTERNATIVES = (
    CostParameters(hidden=0.3, occupancy=0.33),
    CostParameters(room=0.2),
    CostParameters(hidden=0.3, occupancy=0.33, room=0.2),
    CostParameters(hidden=0.3, occupancy=0.33, cores=0.25),
    CostParameters(room=0.2, cores=0.25),
    CostParameters(hidden=0.3, exchange=2.0),
    CostParameters(room=0.4),
    CostParameters(dram=0.5),
    CostParameters(prefetch=0.3),
    CostParameters(setups=2.0),
    CostParameters(hidden=0.3),
    CostParameters(hidden=1.0),
    CostParameters(hidden=0.03),
    CostParameters(occupancy=0.33),
)
"""Different enough from the default, and from each other, to begin with."""
