"""Addresses of both ends of a transfer, congruent where its engine wants that.

Where the model has no address for what lies in a memory, there is room to move it, so that only its
residue counts; that is then a variable of its own, as are the residues of the tensors.
"""

from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.milp.linear import Linear
from spmilp.solvers.milp.memory import Room
from spmilp.solvers.milp.stays import Stay
from spmilp.solvers.milp.variables import Variables
from spmilp.units import EngineIdx, MemoryIdx, SliceIdx, TensorIdx


class Congruences:
    """Adds the rows that engines with a congruence need."""

    def __init__(self, variables: Variables, room: Room) -> None:
        self._vars = variables
        self._lookup = variables.lookup
        self._program = variables.program
        self._room = room

    def add_all(self) -> None:
        """Add them for every transfer and every rider on a multicast."""
        for key, stay in self._vars.stays.items():
            for fill, found in stay.transfers():
                self._tie(fill.source, key, fill.way.engine, found)
            for ride, rides in stay.rides.items():
                leader = self._vars.stays[ride.leader]
                for fill, found in leader.transfers():
                    if fill.way == ride.way and fill.source in ride.sources:
                        both = rides + found - 1
                        self._tie(fill.source, key, fill.way.engine, both)

    def _tie(self, source: Stay, stay: Stay, engine: EngineIdx, found: Linear) -> None:
        modulus = self._lookup.machine.engines[engine].congruence
        if modulus == 1:
            return
        apart = self._address(stay.slice, source) - self._address(stay.slice, stay)
        low, high = self._program.low(apart) // modulus, self._program.high(apart) // modulus
        turns = self._program.number(f"turns_{stay.slice}_{engine}", low, high, whole=True)
        self._program.at_least(apart, turns * modulus, 1 - found)
        self._program.at_most(apart, turns * modulus, 1 - found)

    def _address(self, slice_: SliceIdx, holder: Stay) -> Linear:
        """Return the address of the first byte of a slice in what holds it."""
        problem = self._lookup.problem
        alignment = self._lookup.machine.memories[holder.memory].alignment
        home = self._lookup.home(holder.slice, holder.memory)
        if home is not None:
            offset = layout_at_place(problem, slice_).offset
            return self._block(home, holder.memory) * alignment + offset
        offset = layout_in_slice(problem, slice_, holder.slice).offset
        return self._block(holder, holder.memory) * alignment + offset

    def _block(self, what: Stay | TensorIdx, memory: MemoryIdx) -> Linear:
        if what not in self._room.offsets:
            residues = self._lookup.residues(self._lookup.machine.memories[memory])
            self._room.offsets[what] = self._program.number(
                f"residue_{memory}", 0, residues - 1, whole=True
            )
        return self._room.offsets[what]
