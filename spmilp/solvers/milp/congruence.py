"""Addresses of both ends of a transfer, congruent where its engine wants that.

In an unconstrained memory the model has no addresses: there only the residue of an address counts,
which is then a variable of its own, as are the residues of the tensors.
"""

from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.address_model import AddressModel
from spmilp.solvers.milp.program import Linear
from spmilp.solvers.milp.variables import Variables
from spmilp.units import EngineIdx, MemoryIdx, SliceIdx, TensorIdx


class Congruences:
    """Adds the rows that engines with a congruence need."""

    def __init__(self, variables: Variables, addresses: AddressModel) -> None:
        self._vars = variables
        self._tables = variables.tables
        self._program = variables.program
        self._addresses = addresses

    def add_all(self) -> None:
        """Add them for every transfer and every member of a multicast."""
        for key, candidate in self._vars.candidates.items():
            for fill, found in candidate.fills.all:
                self._tie((fill.source, key), fill.option.engine, found)
            for member, joins in candidate.multicasts.items():
                for fill, found in self._vars.fills_of_root(member):
                    both = joins + found - 1
                    self._tie((fill.source, key), fill.option.engine, both)

    def _tie(
        self, ends: tuple[CandidateResidency, CandidateResidency], engine: EngineIdx, found: Linear
    ) -> None:
        modulus = self._tables.machine.engines[engine].congruence
        if modulus == 1:
            return
        slice_ = ends[1].slice
        apart = self._address(slice_, ends[0]) - self._address(slice_, ends[1])
        low, high = self._program.low(apart) // modulus, self._program.high(apart) // modulus
        multiple = self._program.number(f"multiple_{slice_}_{engine}", low, high, whole=True)
        self._program.at_least(apart, multiple * modulus, 1 - found)
        self._program.at_most(apart, multiple * modulus, 1 - found)

    def _address(self, slice_: SliceIdx, holder: CandidateResidency) -> Linear:
        """Return the address of the first byte of a slice in a residency of it or of its buffer."""
        problem = self._tables.problem
        alignment = self._tables.machine.memories[holder.memory].alignment
        home = self._tables.home(holder.slice, holder.memory)
        if home is not None:
            offset = layout_at_place(problem, slice_).offset
            return self._block(home, holder.memory) * alignment + offset
        offset = layout_in_slice(problem, slice_, holder.slice).offset
        return self._block(holder, holder.memory) * alignment + offset

    def _block(self, key: CandidateResidency | TensorIdx, memory: MemoryIdx) -> Linear:
        if key not in self._addresses.offsets:
            residues = self._tables.residues(memory)
            self._addresses.offsets[key] = self._program.number(
                f"residue_{memory}", 0, residues - 1, whole=True
            )
        return self._addresses.offsets[key]
