"""What several rules look up in a problem and a plan whose structure is sound."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property, partial
from itertools import chain, islice
from math import lcm
from typing import NamedTuple, TypeAlias

from spmilp.checker.rules.sweeps import Circle, Rectangle, overlapping_pairs
from spmilp.machine.routes import Routes, multicast_route
from spmilp.plan.memory import box_at_place, home_of, layout_in_memory
from spmilp.plan.plan import Plan, Residency
from spmilp.plan.states import left_by_others
from spmilp.problem.problem import Problem
from spmilp.problem.strides import footprint
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx

Finding: TypeAlias = tuple[tuple[str, ...], str]
"""What a rule yields: the objects concerned, most important first, and a message about them."""

ENOUGH = 10_000
"""Pairs looked at beyond those that the problem permits; so many are all forbidden ones."""


class Use(NamedTuple):
    """A ``task`` or ``transfer`` (the kind) reads a slice from a residency in ``[start, end)``."""

    kind: str
    number: int
    slice: SliceIdx
    residency: ResidencyIdx
    start: Cycles
    end: Cycles


class Case:
    """A problem and a plan, with the cycle from which each residency is valid and its uses.

    ``home`` has for each residency the DRAM tensor in which it lies, at its buffer's place.
    ``where`` gives the address of a slice in a residency that holds it, and the bytes between its
    neighbours; ``route`` the machine's route from a memory to several, ``None`` without any.
    ``left`` has of each residency of a state which one it is of the inference before.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.machine = problem.machine
        self.routes = Routes(problem.machine)
        self.where = cache(partial(layout_in_memory, problem, plan))
        self.route = cache(partial(multicast_route, self.routes))
        self.home = tuple(home_of(problem, each) for each in plan.residencies)
        self.valid_from = tuple(map(self._valid_from, plan.residencies))
        self.task_uses = tuple(
            Use("task", placement.task, slice_, residency, placement.start, placement.end)
            for placement in plan.placements
            for slice_, residency in zip(
                problem.tasks[placement.task].reads, placement.reads, strict=True
            )
        )
        self.transfer_uses = tuple(
            Use("transfer", move.index, move.slice, move.source, move.start, move.sent)
            for move in plan.transfers
        )
        stream = plan.stream
        self.begins = 0 if stream is None else stream.begins
        self._period = None if stream is None else Circle(stream.begins, stream.period)
        self.left = {} if stream is None else left_by_others(problem, plan, stream)
        counts = (1 + len(each.instances) for each in plan.residencies)
        self._inferences = 0 if stream is None else lcm(*counts)
        self._holders: defaultdict[SliceIdx | None, list[ResidencyIdx]] = defaultdict(list)
        for residency in plan.residencies:
            self._holders[residency.slice].append(residency.index)

    def turns(self, start: Cycles, end: Cycles) -> Iterable[tuple[Cycles, Cycles]]:
        """Return when what is busy during ``[start, end)`` is so: then, but in a stream.

        There each inference does in every period what falls into it, behind the prologue.
        """
        if self._period is None:
            return ((start, end),)
        if start < self.begins:
            return ((start, min(end, self.begins)),)
        return self._period.turns(start, end)

    @property
    def makespan(self) -> Cycles:
        """The cycle at which the last task or transfer ends."""
        ends = [placement.end for placement in self.plan.placements]
        ends += [move.end for move in self.plan.transfers]
        return max(ends, default=0)

    @cached_property
    def sharing(self) -> tuple[tuple[ResidencyIdx, ResidencyIdx], ...]:
        """Each two residencies that share bytes of a memory, or elements of a tensor, at a time.

        Two that are both in a tensor at cycle 0 are none, and of very many the last are left out.
        In a stream they are of one inference.
        """
        return self._sharing[0]

    @property
    def sharing_across(self) -> tuple[tuple[ResidencyIdx, ResidencyIdx], ...]:
        """Each two residencies that share bytes in different inferences of a stream."""
        return self._sharing[1]

    @cached_property
    def _sharing(self) -> tuple[tuple[tuple[ResidencyIdx, ResidencyIdx], ...], ...]:
        permitted = sum(len(task.in_place) for task in self.problem.tasks)
        in_memory: defaultdict[MemoryIdx, list[Rectangle]] = defaultdict(list)
        owners = list[tuple[ResidencyIdx, int | None]]()
        in_tensor: defaultdict[TensorIdx, list[Rectangle]] = defaultdict(list)
        changing = {
            home
            for each, home in zip(self.plan.residencies, self.home, strict=True)
            if is_filled(each)
        }
        for each, home in zip(self.plan.residencies, self.home, strict=True):
            if home is None or each.slice is None:
                for inference, low, start, end in self._copies(each):
                    bytes_ = Rectangle(low, low + each.bytes, len(owners), start, end)
                    in_memory[each.memory].append(bytes_)
                    owners.append((each.index, inference))
            elif home in changing:
                part, layout = self.problem.slices[each.slice], self.where(each.slice, each.index)
                item = self.problem.buffers[part.buffer].item
                end = layout.offset + footprint(part.extent, item, layout)
                in_tensor[home].append(
                    Rectangle(layout.offset, end, each.index, each.start, each.end)
                )
        of_memories = chain.from_iterable(map(overlapping_pairs, in_memory.values()))
        of_tensors = chain.from_iterable(map(overlapping_pairs, in_tensor.values()))
        of_one, across = dict[tuple[int, int], None](), dict[tuple[int, int], None]()
        most = (permitted + ENOUGH) * max(1, self._inferences)
        for one, other in islice(of_memories, most):
            (a, inference), (b, another) = owners[one], owners[other]
            (of_one if inference == another else across)[a, b] = None
        of_one |= dict.fromkeys(islice(filter(self._changes_elements, of_tensors), most))
        return tuple(of_one), tuple(across)

    def offsets(self, each: Residency) -> tuple[Bytes, ...]:
        """Return the offset of a residency, in a stream those of all inferences that differ."""
        found = (each.offset, *each.instances)
        return found * max(1, self._inferences // len(found))

    def _copies(self, each: Residency) -> Iterator[tuple[int | None, Bytes, Cycles, Cycles]]:
        """Yield offset, start and end of a residency, in a stream of all inferences that differ.

        Time is a circle then, as many periods long. What goes around it is there together with what
        begins in it as that of an earlier inference, by whose number it comes. What is there once,
        or for ever, is of none.
        """
        stream, end = self.plan.stream, each.end
        if stream is None or each.start < stream.begins:
            if stream is not None and end > stream.begins:
                # What a state is of the inference before is there from then on, on the circle.
                stays = each.index not in self.left
                end = stream.begins + stays * self._inferences * stream.period
            yield None, each.offset, each.start, end
            return
        circle = Circle(stream.begins, self._inferences * stream.period)
        for number, offset in enumerate(self.offsets(each)):
            start, end = (cycle + number * stream.period for cycle in (each.start, each.end))
            number -= (start - circle.first) // circle.length * self._inferences
            for turn in circle.turns(start, end):
                yield number, offset, *turn
                number -= self._inferences

    def _changes_elements(self, pair: tuple[ResidencyIdx, ResidencyIdx]) -> bool:
        """Say whether two residencies share elements of a tensor, and something fills one."""
        one, other = (self.plan.residencies[index] for index in pair)
        if one.slice is None or other.slice is None or not (is_filled(one) or is_filled(other)):
            return False
        sides = zip(*(box_at_place(self.problem, s) for s in (one.slice, other.slice)), strict=True)
        return all(a < d and c < b for (a, b), (c, d) in sides)

    def holds(self, residency: ResidencyIdx, slice_: SliceIdx) -> bool:
        """Say whether a residency is of the slice or of its whole parent."""
        held = self.plan.residencies[residency].slice
        return held is not None and held in (slice_, self.problem.slices[slice_].buffer)

    def holders(self, slice_: SliceIdx) -> list[ResidencyIdx]:
        """Return the residencies of the slice and of its whole parent."""
        parent = self.problem.slices[slice_].buffer
        found = self._holders.get(slice_, [])
        return found if parent == slice_ else found + self._holders.get(parent, [])

    def is_lost(self, use: Use) -> bool:
        """Say whether no residency anywhere has the slice until a use of it ends.

        What the use itself fills becomes valid at its end only, and does not count.
        """
        return not any(
            self.valid_from[holder] < use.end <= self.plan.residencies[holder].end
            for holder in self.holders(use.slice)
        )

    def defects_of_source(self, use: Use) -> Iterator[str]:
        """Say why something cannot read a slice in a residency from its start to its end."""
        end, valid = self.plan.residencies[use.residency].end, self.valid_from[use.residency]
        if not self.holds(use.residency, use.slice):
            yield f"which holds {self.content(use.residency)}"
        if valid > use.start:
            yield f"which is valid from cycle {valid} > {use.start}, the {use.kind}'s start"
        if end < use.end and not self.is_lost(use):
            last = "the task's end" if use.kind == "task" else "when all is sent"
            yield f"which ends at cycle {end} < {use.end}, {last}"

    def task(self, index: int) -> str:
        """Return the name of a task for messages."""
        return f"task {index} ({self.problem.tasks[index].name})"

    def core(self, index: int) -> str:
        """Return the name of a core for messages."""
        return f"core {self.machine.cores[index].name}"

    def memory(self, index: MemoryIdx) -> str:
        """Return the name of a memory for messages."""
        return self.machine.memories[index].name

    def buffer(self, index: BufferIdx) -> str:
        """Return the name of a buffer for messages."""
        return f"buffer {index} ({self.problem.buffers[index].name})"

    def slice(self, index: SliceIdx) -> str:
        """Return the name of a slice for messages."""
        return f"slice {index} ({self._name(index)})"

    def tensor(self, index: TensorIdx) -> str:
        """Return the name of a DRAM tensor for messages."""
        return f"tensor {index} ({self.problem.tensors[index].name})"

    def residency(self, index: ResidencyIdx) -> str:
        """Return the name of a residency for messages."""
        found = self.plan.residencies[index]
        name = "scratch" if found.slice is None else self._name(found.slice)
        return f"residency {index} ({name} in {self.memory(found.memory)})"

    def content(self, index: ResidencyIdx) -> str:
        """Return the name of what a residency holds."""
        held = self.plan.residencies[index].slice
        return "scratch" if held is None else self.slice(held)

    def user(self, use: Use) -> str:
        """Return the name of what uses a residency."""
        return self.task(use.number) if use.kind == "task" else f"transfer {use.number}"

    def _name(self, slice_: SliceIdx) -> str:
        return self.problem.buffers[self.problem.slices[slice_].buffer].name

    def _valid_from(self, residency: Residency) -> Cycles:
        if residency.filled_by_task is not None:
            return self.plan.placements[residency.filled_by_task].end
        if residency.filled_by_transfer is not None:
            return self.plan.transfers[residency.filled_by_transfer].end
        return residency.start


def is_filled(residency: Residency) -> bool:
    """Say whether a task or a transfer fills a residency; else it is there at cycle 0."""
    return residency.filled_by_task is not None or residency.filled_by_transfer is not None
