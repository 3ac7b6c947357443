"""In which DRAM each tensor lies."""

from spmilp.errors import DoesNotFitError, SpmilpError
from spmilp.machine.machine import Machine
from spmilp.units import Bytes, MemoryIdx


class DramChooser:
    """Spreads tensors over a machine's DRAMs in proportion to what their links can send.

    Raises
    ------
    SpmilpError
        If the machine has no DRAM.
    """

    def __init__(self, machine: Machine) -> None:
        if not machine.drams:
            raise SpmilpError(
                f"machine {machine.name} has no DRAM, but inputs, weights and outputs lie in one"
            )
        self._drams = machine.drams
        self._used = {dram.index: 0 for dram in machine.drams}
        self._rate = {
            dram.index: float(sum(link.rate for link in machine.links if link.source == dram.name))
            or 1.0
            for dram in machine.drams
        }

    def __call__(self, name: str, size: Bytes) -> MemoryIdx:
        """Return the DRAM that is least loaded, for its rate, with a tensor of ``size`` bytes.

        Raises
        ------
        DoesNotFitError
            If none has that many bytes left.
        """
        with_room = [
            dram.index
            for dram in self._drams
            if dram.usable is None or self._used[dram.index] + size <= dram.usable
        ]
        if not with_room:
            most = max((dram.usable or 0) - self._used[dram.index] for dram in self._drams)
            raise DoesNotFitError(
                f"tensor {name}: {size} B, but no DRAM has more than {most} B left; use a machine "
                "with a larger DRAM"
            )
        chosen = min(with_room, key=lambda dram: (self._used[dram] + size) / self._rate[dram])
        self._used[chosen] += size
        return chosen
