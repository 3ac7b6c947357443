"""What arrives: its variables."""

from dataclasses import dataclass
from typing import NamedTuple

from spmilp.solvers.cpsat.variables import Interval, Literal, Number
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, MemoryIdx, SliceIdx, TaskIdx

DRAM, ELSEWHERE = True, False
"""Where an arrival comes from."""


class Key(NamedTuple):
    """Which arrival of a slice in a memory it is.

    Parameters
    ----------
    reader
        The task that is the first there to read what has arrived. ``None`` where arrivals are not
        told apart, and only the first one is in the model; and for what no task there reads.
    """

    slice: SliceIdx
    memory: MemoryIdx
    reader: TaskIdx | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """An arrival out of a DRAM, or from elsewhere, and the least that it takes.

    Parameters
    ----------
    alone
        Whether no other arrival can be part of the same transfer.
    """

    taken: Literal
    interval: Interval
    cycles: Cycles
    ways: tuple[TransferOption, ...]
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A transfer of a slice into a memory, if there is one."""

    present: Literal
    start: Number
    valid: Number
    kinds: dict[bool, Kind]
