"""Residencies that a joint window may have or use, and transfers that may fill them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.solvers.lns.window_model import Time
from spmilp.solvers.partial_order.transfer_options import TransferOption
from spmilp.units import MemoryIdx, ResidencyIdx, SliceIdx


class Use(NamedTuple):
    """An activity that reads a slice from a holder, if ``literal`` says so, until ``finish``."""

    activity: int | None
    what: SliceIdx
    literal: cp_model.IntVar
    finish: Time


@dataclass(slots=True, eq=False)
class Holder:
    """A residency, of the schedule or a new one.

    Parameters
    ----------
    valid
        When it has been filled.
    present
        Whether it is there.
    end
        Until when it is there at the latest; ``None`` where the rest of the schedule has it.
    residency
        Its number; ``None`` for what a free slot would fill.
    """

    what: SliceIdx
    memory: MemoryIdx
    valid: Time
    present: cp_model.IntVar
    end: cp_model.IntVar | None = None
    residency: ResidencyIdx | None = None
    uses: list[Use] = field(default_factory=list)


class Source(NamedTuple):
    """A way to fill a holder: from where, whether it is taken, and by which transfer."""

    holder: Holder
    literal: cp_model.IntVar
    option: TransferOption


@dataclass(slots=True, eq=False)
class Delivery:
    """A transfer that may fill a holder; ``transfer`` is ``None`` for a free slot."""

    holder: Holder
    transfer: int | None
    start: cp_model.IntVar
    sources: list[Source] = field(default_factory=list)


class InPlace(NamedTuple):
    """Whether what a task writes overwrites a holder."""

    new: ResidencyIdx
    holder: Holder
    literal: cp_model.IntVar
