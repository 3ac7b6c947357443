"""Successors of a state: a transfer starts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from spmilp.units import MemoryIdx, SliceIdx
from tests.oracle.capacity import CapacityModel, Item
from tests.oracle.contents import Contents, Demand, combined
from tests.oracle.state import LiveResidency, Node, RunningTransfer, State
from tests.oracle.tables import ProblemTables
from tests.oracle.transfer_options import UNREACHABLE, TransferOption, TransferOptions


@dataclass(frozen=True, slots=True)
class TransferStart:
    """A transfer starts: from a named residency to new ones."""

    slice: SliceIdx
    source: int
    option: TransferOption
    destinations: tuple[int, ...]


class TransferStarts:
    """Every transfer that could start and be of use.

    A transfer brings a slice that is still wanted. Into an unconstrained memory (see
    :mod:`.capacity`) it brings nothing that is there already or comes sooner, as a slice of its own
    or inside its parent, unless the layout of the source matters to the engines.
    """

    def __init__(
        self,
        tables: ProblemTables,
        models: Sequence[CapacityModel],
        options: TransferOptions,
        demand: Demand,
    ) -> None:
        self._tables = tables
        self._models = models
        self._options = options
        self._demand = demand

    def after(self, node: Node) -> Iterator[tuple[Node, TransferStart]]:
        """Yield the successors by the start of one transfer."""
        state = node.state
        for part in self._tables.problem.slices:
            targets = self._demand.targets(state, part.index)
            if not targets:
                continue
            for memory, position in self._sources(state, part.index):
                held = state.memories[memory].residencies[position].slice
                for option in self._options.of(part.index, memory, held):
                    if self._is_free(state, option) and self._is_useful(
                        state, part.index, option, targets
                    ):
                        yield from self._started(node, part.index, memory, position, option)

    def _sources(self, state: State, slice_: SliceIdx) -> Iterator[tuple[MemoryIdx, int]]:
        """Yield the residencies to copy a slice from; one of those in an unconstrained memory."""
        whole = self._tables.whole[slice_]
        for memory, memory_state in enumerate(state.memories):
            for position, residency in enumerate(memory_state.residencies):
                if (
                    residency.slice in (slice_, whole)
                    and residency.valid_in == 0
                    and not residency.leaving
                ):
                    yield memory, position
                    if self._models[memory].is_unconstrained and not self._options.are_particular:
                        break

    def _is_free(self, state: State, option: TransferOption) -> bool:
        """Say whether a channel of the engine and the rate on every link are free."""
        channels = self._tables.machine.engines[option.engine].channels
        if sum(transfer.engine == option.engine for transfer in state.transfers) >= channels:
            return False
        return all(
            option.rate
            + sum(transfer.rate for transfer in state.transfers if link in transfer.links)
            <= self._tables.link_rates[link]
            for link in option.links
        )

    def _is_useful(
        self, state: State, slice_: SliceIdx, option: TransferOption, targets: set[MemoryIdx]
    ) -> bool:
        onward = self._options.fastest[slice_]
        return all(
            any(onward[memory][target] < UNREACHABLE for target in targets)
            and self._tables.may_lie(slice_, memory)
            and not (
                self._models[memory].is_unconstrained
                and self._is_there(state, slice_, memory, option)
            )
            for memory in option.destinations
        )

    def _is_there(
        self, state: State, slice_: SliceIdx, memory: MemoryIdx, option: TransferOption
    ) -> bool:
        whole = self._tables.whole[slice_]
        for residency in state.memories[memory].residencies:
            if residency.slice == slice_:
                return True
            if residency.slice == whole and not self._options.are_particular:
                return residency.valid_in <= option.cycles
        return False

    def _started(
        self, node: Node, slice_: SliceIdx, memory: MemoryIdx, position: int, option: TransferOption
    ) -> Iterator[tuple[Node, TransferStart]]:
        ends = option.destinations
        source = node.state.memories[memory].residencies[position]
        choices = [self._residues(node.state, slice_, memory, source, option, m) for m in ends]
        names = range(node.next_name, node.next_name + len(ends))
        transfer = TransferStart(slice_, node.names[memory][position], option, tuple(names))
        running = RunningTransfer(option.engine, option.rate, option.links, option.cycles)
        transfers = tuple(sorted((*node.state.transfers, running)))
        for residues in product(*choices):
            left_behind = Contents.of(node, memory)
            left_behind.use(position, option.cycles)
            changed = {memory: [left_behind]}
            for end, residue, name in zip(ends, residues, names, strict=True):
                before = left_behind if end == memory else Contents.of(node, end)
                item = self._item(slice_, end, residue, option)
                changed[end] = list(before.with_items(self._models[end], [item], [name]))
            for memories, all_names in combined(node, changed, self._models):
                state = node.state._replace(transfers=transfers, memories=memories)
                yield Node(state, all_names, node.next_name + len(ends)), transfer

    def _item(
        self, slice_: SliceIdx, memory: MemoryIdx, residue: int, option: TransferOption
    ) -> Item:
        return Item(
            residency=LiveResidency(slice_, residue, option.cycles, option.cycles, False, False),
            bytes=self._tables.problem.slices[slice_].bytes,
            is_placed=self._tables.home(slice_, memory) is not None,
        )

    def _residues(
        self,
        state: State,
        slice_: SliceIdx,
        memory: MemoryIdx,
        source: LiveResidency,
        option: TransferOption,
        end: MemoryIdx,
    ) -> list[int]:
        """Return the residues that the engine's congruence leaves to the new residency.

        One at its place has that of its tensor, written 0; there is none if that breaks the rule.
        """
        congruence = self._tables.machine.engines[option.engine].congruence
        inside = self._options.offset_in_source(slice_, memory, source.slice).offset
        home = self._tables.home(slice_, memory)
        first = inside + (source.residue if home is None else state.tensor_residues[home])
        at = self._tables.home(slice_, end)
        if at is not None:
            to = (
                self._options.offset_in_source(slice_, end, slice_).offset
                + state.tensor_residues[at]
            )
            return [0] if (first - to) % congruence == 0 else []
        return [r for r in self._tables.residues[end] if (first - r) % congruence == 0]
