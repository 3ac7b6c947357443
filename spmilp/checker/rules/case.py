"""What several rules look up in a problem and a plan whose structure is sound."""

from typing import NamedTuple, TypeAlias

from spmilp.machine.routes import Route, Routes, multicast_route
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, layout_at_place, layout_in_slice
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx

Where: TypeAlias = tuple[Bytes, tuple[Bytes, ...]]
"""Address of a slice's first byte, and the bytes between neighbours along each axis."""


class Use(NamedTuple):
    """Something reads a slice from a residency during ``[start, end)``.

    Parameters
    ----------
    kind, number
        ``task`` or ``transfer``, and which one.
    """

    kind: str
    number: int
    slice: SliceIdx
    residency: ResidencyIdx
    start: Cycles
    end: Cycles


class Case:
    """A problem and a plan, with the cycle from which each residency is valid and its uses."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.machine = problem.machine
        self.routes = Routes(problem.machine)
        self.home = self._tensors_that_hold_residencies()
        self.valid_from = tuple(self._filled_at(residency) for residency in plan.residencies)
        self.task_uses = tuple(
            Use("task", placement.task, slice_, residency, placement.start, placement.end)
            for placement in plan.placements
            for slice_, residency in zip(
                problem.tasks[placement.task].reads, placement.reads, strict=True
            )
        )
        self.transfer_uses = tuple(
            Use("transfer", move.index, move.slice, move.source, move.start, move.end)
            for move in plan.transfers
        )
        self._holders: dict[SliceIdx, list[ResidencyIdx]] = {}
        for residency in plan.residencies:
            if residency.slice is not None:
                self._holders.setdefault(residency.slice, []).append(residency.index)
        self._layouts: dict[tuple[SliceIdx, SliceIdx | None], Layout] = {}
        self._multicasts: dict[tuple[MemoryIdx, tuple[MemoryIdx, ...]], Route | None] = {}

    @property
    def makespan(self) -> Cycles:
        """The cycle at which the last task or transfer ends."""
        ends = [placement.end for placement in self.plan.placements]
        ends += [move.end for move in self.plan.transfers]
        return max(ends, default=0)

    def holds(self, residency: ResidencyIdx, slice_: SliceIdx) -> bool:
        """Say whether a residency is of the slice or of its whole parent."""
        held = self.plan.residencies[residency].slice
        return held is not None and held in (slice_, self.problem.slices[slice_].buffer)

    def holders(self, slice_: SliceIdx) -> list[ResidencyIdx]:
        """Return the residencies of the slice and of its whole parent."""
        parent = self.problem.slices[slice_].buffer
        found = list(self._holders.get(slice_, ()))
        return found if parent == slice_ else found + self._holders.get(parent, [])

    def is_lost(self, use: Use) -> bool:
        """Say whether no residency anywhere has the slice until a use of it ends.

        What the use itself fills becomes valid at its end only, and does not count.
        """
        return not any(
            self.valid_from[holder] < use.end <= self.plan.residencies[holder].end
            for holder in self.holders(use.slice)
        )

    def where(self, slice_: SliceIdx, index: ResidencyIdx) -> Where:
        """Return where a slice lies that a residency holds."""
        home = self.home[index]
        residency = self.plan.residencies[index]
        if home is not None:
            layout = self._layouts.get((slice_, None))
            if layout is None:
                layout = self._layouts[slice_, None] = layout_at_place(self.problem, slice_)
            return self.plan.tensors[home] + layout.offset, layout.strides
        holder = slice_ if residency.slice is None else residency.slice
        layout = self._layouts.get((slice_, holder))
        if layout is None:
            layout = layout_in_slice(self.problem, slice_, holder)
            self._layouts[slice_, holder] = layout
        return residency.offset + layout.offset, layout.strides

    def route(self, source: MemoryIdx, destinations: tuple[MemoryIdx, ...]) -> Route | None:
        """Return the machine's route of a transfer; ``None`` when there is none."""
        if len(destinations) == 1:
            return self.routes.between(source, destinations[0])
        ends = (source, destinations)
        if ends not in self._multicasts:
            self._multicasts[ends] = multicast_route(self.routes, source, destinations)
        return self._multicasts[ends]

    def task(self, index: int) -> str:
        """Return the name of a task for messages."""
        return f"task {index} ({self.problem.tasks[index].name})"

    def core(self, index: int) -> str:
        """Return the name of a core for messages."""
        return f"core {self.machine.cores[index].name}"

    def memory(self, index: MemoryIdx) -> str:
        """Return the name of a memory for messages."""
        return self.machine.memories[index].name

    def slice(self, index: SliceIdx) -> str:
        """Return the name of a slice for messages."""
        name = self.problem.buffers[self.problem.slices[index].buffer].name
        return f"slice {index} ({name})"

    def residency(self, index: ResidencyIdx) -> str:
        """Return the name of a residency for messages."""
        found = self.plan.residencies[index]
        if found.slice is None:
            return f"residency {index} (scratch in {self.memory(found.memory)})"
        name = self.problem.buffers[self.problem.slices[found.slice].buffer].name
        return f"residency {index} ({name} in {self.memory(found.memory)})"

    def user(self, use: Use) -> str:
        """Return the name of what uses a residency."""
        return self.task(use.number) if use.kind == "task" else f"transfer {use.number}"

    def _tensors_that_hold_residencies(self) -> tuple[TensorIdx | None, ...]:
        """Return for each residency the DRAM tensor in which it lies, at its buffer's place."""
        tensor = [None if b.place is None else b.place.tensor for b in self.problem.buffers]
        memory = [None if t is None else self.problem.tensors[t].memory for t in tensor]
        buffer = [slice_.buffer for slice_ in self.problem.slices]
        return tuple(
            None
            if residency.slice is None or memory[buffer[residency.slice]] != residency.memory
            else tensor[buffer[residency.slice]]
            for residency in self.plan.residencies
        )

    def _filled_at(self, residency: Residency) -> Cycles:
        if residency.filled_by_task is not None:
            return self.plan.placements[residency.filled_by_task].end
        if residency.filled_by_transfer is not None:
            return self.plan.transfers[residency.filled_by_transfer].end
        return residency.start
