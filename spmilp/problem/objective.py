"""The quantities that a plan minimises, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Quantity(StrEnum):
    """A measure of a plan; less is better.

    ``makespan``
        Cycles until the last task or transfer has ended.
    ``dram_traffic``
        Bytes that transfers read from DRAM and write to DRAM.
    ``energy``
        Femtojoules of tasks and transfers, as far as the machine states them.
    ``peak_spm``
        Bytes from address 0 to the end of the highest residency in any scratchpad.
    ``period``
        Cycles from the begin of an inference to that of the next one, in a stream of them.
    """

    MAKESPAN = "makespan"
    DRAM_TRAFFIC = "dram_traffic"
    ENERGY = "energy"
    PEAK_SPM = "peak_spm"
    PERIOD = "period"


@dataclass(frozen=True, slots=True)
class Objective:
    """All quantities, each once: the first is *the* objective, others in turn break ties."""

    order: tuple[Quantity, ...] = tuple(Quantity)

    def __post_init__(self) -> None:
        if sorted(self.order) != sorted(Quantity):
            given, known = ", ".join(self.order), ", ".join(Quantity)
            raise ValueError(f"objective: {given or 'nothing'}; expected each of {known} once")

    @classmethod
    def of(cls, first: Quantity) -> "Objective":
        """Return the objective ``first`` with the others behind it in their usual order."""
        return cls((first, *(quantity for quantity in Quantity if quantity is not first)))

    @classmethod
    def ending_with_period(cls, order: Sequence[Quantity]) -> "Objective":
        """Return the objective of an order that may leave out the period, which is then last."""
        more = () if Quantity.PERIOD in order else (Quantity.PERIOD,)
        return cls((*order, *more))

    @property
    def first(self) -> Quantity:
        """The quantity that bounds and gaps refer to."""
        return self.order[0]


DEFAULT_OBJECTIVE = Objective()
