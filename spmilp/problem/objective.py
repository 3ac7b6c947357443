"""The quantities that a plan minimises, in order."""

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


OF_ONE_INFERENCE = tuple(quantity for quantity in Quantity if quantity is not Quantity.PERIOD)


@dataclass(frozen=True, slots=True)
class Objective:
    """The first quantity is *the* objective, others in turn break ties.

    All but the period are there once; the period of a stream is the first one, or none.
    """

    order: tuple[Quantity, ...] = OF_ONE_INFERENCE

    def __post_init__(self) -> None:
        rest = self.order[1:] if self.order[:1] == (Quantity.PERIOD,) else self.order
        if sorted(rest) != sorted(OF_ONE_INFERENCE):
            given, known = ", ".join(self.order), ", ".join(OF_ONE_INFERENCE)
            raise ValueError(f"objective: {given or 'nothing'}; expected each of {known} once")

    @classmethod
    def of(cls, first: Quantity) -> "Objective":
        """Return the objective ``first`` with the others behind it in their usual order."""
        return cls((first, *(quantity for quantity in OF_ONE_INFERENCE if quantity is not first)))

    @property
    def first(self) -> Quantity:
        """The quantity that bounds and gaps refer to."""
        return self.order[0]


DEFAULT_OBJECTIVE = Objective()
