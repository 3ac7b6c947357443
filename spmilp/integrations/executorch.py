"""Memory planning of ExecuTorch by the packer: the smallest arenas, or memories with capacities.

ExecuTorch calls a planning algorithm once for each graph, for those of control flow first, with
tensors that know their bytes and the first and the last node that need them. The algorithm writes
an arena (``mem_id``) and an offset to each, and returns the bytes of each arena.

What the graphs of one node hold lies together, like a tensor that lives from this node until the
last use of its results, for these are handed over as pointers.
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from spmilp import quantities
from spmilp.errors import ArgumentError, DoesNotFitError, SpmilpError
from spmilp.packing import (
    Buffer,
    Item,
    PackingOptions,
    PackingStatus,
    Pool,
    PoolPacking,
    PoolProblem,
    check_pools,
    pack_pools,
)
from spmilp.packing.items import busiest
from spmilp.packing.pools import pool_of
from spmilp.units import Bytes

if TYPE_CHECKING:
    from executorch.exir.tensor import TensorSpec
    from torch.export import ExportGraphSignature
    from torch.fx import GraphModule

NODES = 4_000_000
"""Nodes of the search for one graph, some seconds; most graphs need fewer than a hundred."""


class MemoryPlanning:
    """A ``memory_planning_algo`` for ExecuTorch's ``MemoryPlanningPass``.

    >>> algorithm = MemoryPlanning({1: "tcm=128K", 2: "sram=1M,cost=1"})
    >>> planning = MemoryPlanningPass(memory_planning_algo=algorithm)
    >>> program = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))

    Parameters
    ----------
    banks
        The memory of each ``mem_id``, 1 or more: a :class:`spmilp.packing.Pool`, or a text as of
        ``spmilp pack --pool``. The cost is that of each byte of each tensor in it; tensors take
        banks at the least cost. Those to which an earlier pass gave a ``mem_id`` keep it; an arena
        without a bank has no limit, and holds such tensors alone. Without banks all others lie in
        arena 1, as with ExecuTorch's ``greedy``. Arenas are then as small as they can be.
    time_limit, node_limit
        For each graph: seconds or a text such as ``"5m"``; nodes of the search, ``None`` for no
        limit. The same graph and limit in nodes give the same plan when no time limit strikes.

    Attributes
    ----------
    packings
        What was found for each graph, in the order of the calls: offsets, heights, proven bounds.

    Raises an ``ArgumentError`` if a bank or a limit is malformed. A call raises a
    ``DoesNotFitError`` with bytes needed, bytes there are and tensors if these do not fit, and a
    ``SpmilpError`` if tensors cannot be planned: of other devices with banks, or inside tensors
    that ExecuTorch does not plan.
    """

    def __init__(
        self,
        banks: Mapping[int, Pool | str] | None = None,
        *,
        time_limit: float | str = "none",
        node_limit: int | None = NODES,
    ) -> None:
        try:
            seconds = quantities.duration(time_limit)
            self._banks = {mem_id: _bank(mem_id, given) for mem_id, given in (banks or {}).items()}
            if banks:
                PoolProblem(buffers=(), pools=tuple(self._banks.values()))  # checks names and sums
        except ValueError as error:
            raise ArgumentError(str(error)) from error
        if node_limit is not None and node_limit < 1:
            raise ArgumentError(f"node_limit is {node_limit}, expected 1 or more, or None")
        self._options = PackingOptions(
            time_limit=None if math.isinf(seconds) else seconds, node_limit=node_limit
        )
        self._pinned: WeakSet[TensorSpec] = WeakSet()
        self.packings: list[PoolPacking] = []

    def __call__(
        self,
        alignment: Bytes,
        specs: "Iterable[TensorSpec]",
        graph_module: "GraphModule",
        graph_signature: "ExportGraphSignature | None" = None,
        extra_padding: Bytes = 0,
    ) -> list[Bytes]:
        """Write arena and offset to each tensor; return the bytes of each arena, of arena 0 none.

        Offsets are multiples of ``alignment``; ``extra_padding`` follows what lies in an arena.
        """
        tensors = list(specs)
        for spec in tensors:
            spec.realign(alignment)
        # ExecuTorch 1.0 knows no devices.
        devices = {spec.device.name for spec in tensors if hasattr(spec, "device")} - {"CPU"}
        if self._banks and devices:
            named = quantities.names(sorted(devices))
            raise SpmilpError(f"banks hold tensors of the CPU alone; some are on {named}")
        names = _names(graph_module)
        self._pinned.update(spec for spec in tensors if spec.mem_id)
        within = [*self._blocks_of_control_flow(graph_module)]
        blocks = [*self._blocks(tensors, names), *within]
        # Sorted, for ExecuTorch 1.0 may give tensors in any order.
        blocks.sort(key=lambda block: (block.life, block.size, block.name))
        pools = self._pools(blocks, alignment, extra_padding)
        mem_ids = list(pools)
        packing = self._packed(
            PoolProblem(
                buffers=tuple(block.buffer(pools, alignment) for block in blocks),
                pools=tuple(pools.values()),
            )
        )
        # Greedy lets the results of a condition be overwritten, which takes fewer bytes.
        if packing.status is PackingStatus.FEASIBLE and not self._banks and not within:
            _warn_if_greedy_is_better(packing, alignment, tensors, graph_module, graph_signature)
        for spec in tensors:
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = mem_ids[0], 0, None
        for block, (pool, offset) in zip(blocks, packing.places or (), strict=True):
            for spec in block.specs:
                spec.mem_id, spec.mem_offset = mem_ids[pool], spec.mem_offset + offset
        _place_inside_others(tensors, names)
        arenas = [0] * (1 + max(1, *mem_ids))
        for mem_id, height in zip(mem_ids, packing.heights or (), strict=True):
            arenas[mem_id] = height + extra_padding * (height > 0)
        return arenas

    def _blocks(
        self, tensors: "Sequence[TensorSpec]", names: "Mapping[TensorSpec, str]"
    ) -> "Iterator[_Block]":
        """Yield tensors that have bytes of their own."""
        for spec in tensors:
            if _base(spec) is None and spec.allocated_memory:
                yield _Block(
                    name=names[spec],
                    size=spec.allocated_memory,
                    life=(*spec.lifetime,),
                    mem_ids=(spec.mem_id,) if spec.mem_id else (*self._banks,) or (1,),
                    specs=(spec,),
                )

    def _blocks_of_control_flow(self, graph_module: "GraphModule") -> "Iterator[_Block]":
        """Yield for each node with graphs and each arena what they hold in it, their offsets kept.

        The graphs of one node begin at the same offset, as with ExecuTorch: a branch or the other.
        Without pinned tensors they may move into each bank whose alignment their offsets keep.
        """
        from executorch.exir.memory_planning import get_node_tensor_specs

        # In a call for another device, on which no control flow runs, there are no such bytes.
        if not getattr(graph_module, "input_mem_buffer_sizes", None):
            return
        for position, node, graphs in _graphs_inside(graph_module):
            until = max(
                (spec.lifetime[1] for spec in get_node_tensor_specs(node)), default=position
            )
            sizes = [graph.meta["non_const_buffer_sizes"] for graph in graphs]
            specs = dict.fromkeys(spec for graph in graphs for spec in _planned_in(graph))
            for mem_id in range(1, max(map(len, sizes))):
                those = tuple(spec for spec in specs if spec.mem_id == mem_id)
                size = max(each[mem_id] for each in sizes if mem_id < len(each))
                mem_ids = [mem_id]
                if mem_id in self._banks and self._pinned.isdisjoint(those):
                    alignment = self._banks[mem_id].alignment
                    mem_ids = [
                        m for m, bank in self._banks.items() if not alignment % bank.alignment
                    ]
                if size:
                    name, life = f"graphs of {node.name}", (position, until)
                    yield _Block(name, size, life, (*mem_ids,), those)

    def _packed(self, problem: PoolProblem) -> PoolPacking:
        """Pack and check, or say what does not fit."""
        packing = pack_pools(problem, self._options)
        self.packings.append(packing)
        if packing.places is None:
            is_proven = packing.status is PackingStatus.INFEASIBLE
            raise DoesNotFitError(_failure(packing), is_proven=is_proven)
        for violation in check_pools(problem, packing.places):
            message = f"{violation.rule}: {violation.message}"
            raise SpmilpError(f"the checker rejects the plan, a defect of spmilp: {message}")
        return packing

    def _pools(
        self, blocks: "Sequence[_Block]", alignment: Bytes, padding: Bytes
    ) -> dict[int, Pool]:
        """Return the memory of each ``mem_id``: the banks without the padding, and arenas with
        room for everything.
        """
        pools = dict(self._banks)
        for mem_id, bank in pools.items() if padding else ():
            last = max(0, bank.capacity - padding), bank.capacity
            pools[mem_id] = replace(bank, reserved=(*bank.reserved, last))
        room = sum(block.size + alignment for block in blocks) or 1
        needed = {mem_id for block in blocks for mem_id in block.mem_ids}
        for mem_id in sorted(needed - {*pools}) or [1] * (not pools):
            pools[mem_id] = Pool(name=f"arena {mem_id}", capacity=room)
        return pools


@dataclass(frozen=True, slots=True)
class _Block:
    """Bytes that are placed as one: of a tensor, or of all tensors of a node's graphs in an arena.

    ``life`` are the first and the last node that need it, ``mem_ids`` the arenas it may lie in.
    """

    name: str
    size: Bytes
    life: tuple[int, int]
    mem_ids: tuple[int, ...]
    specs: "tuple[TensorSpec, ...]"

    def buffer(self, pools: Mapping[int, Pool], alignment: Bytes) -> Buffer:
        """Return the buffer of the packing problem."""
        lifetime = (self.life[0], self.life[1] + 1)
        return Buffer(
            name=self.name,
            item=Item(size=self.size, lifetimes=(lifetime,), alignment=alignment),
            pools=tuple(pools[mem_id].name for mem_id in self.mem_ids),
        )


def _bank(mem_id: int, given: Pool | str) -> Pool:
    """Return a bank, read from its text if it is one."""
    if not isinstance(mem_id, int) or mem_id < 1:
        raise ValueError(f"banks: {mem_id!r} is no mem_id of tensors, expected 1, 2, ...")
    if not isinstance(given, Pool | str):
        expected = "expected a Pool or a text such as 'sram=256K,cost=1'"
        raise ValueError(f"banks: {given!r} for mem_id {mem_id}, {expected}")
    return pool_of(given) if isinstance(given, str) else given


def _base(spec: "TensorSpec") -> "TensorSpec | None":
    """Return the tensor inside which another one lies; ExecuTorch 1.0 has no such."""
    base: TensorSpec | None = getattr(spec, "storage_base", None)
    return base


def _names(graph_module: "GraphModule") -> "dict[TensorSpec, str]":
    """Return the name of the first node of each tensor that is more than its allocation."""
    from executorch.exir import memory
    from executorch.exir.memory_planning import get_node_tensor_specs

    names: dict[TensorSpec, str] = {}
    for node in sorted(graph_module.graph.nodes, key=lambda node: node.target is memory.alloc):
        specs = get_node_tensor_specs(node)
        for i, spec in enumerate(specs):
            names.setdefault(spec, f"{node.name}[{i}]" if len(specs) > 1 else node.name)
    return names


def _graphs_inside(graph_module: "GraphModule") -> "Iterator[tuple[int, Any, list[GraphModule]]]":
    """Yield each node of control flow, with its position and its graphs, which are planned."""
    from executorch.exir.delegate import executorch_call_delegate

    for position, node in enumerate(graph_module.graph.nodes):
        targets = [one.target for one in node.all_input_nodes if one.op == "get_attr"]
        graphs = [getattr(graph_module, target, None) for target in targets]
        planned = [one for one in graphs if "non_const_buffer_sizes" in getattr(one, "meta", ())]
        if planned and node.target is not executorch_call_delegate:
            yield position, node, planned


def _planned_in(graph_module: "GraphModule") -> "Iterator[TensorSpec]":
    """Yield the tensors of a graph, and of those inside it, that have offsets."""
    from executorch.exir.memory_planning import get_node_tensor_specs

    for node in graph_module.graph.nodes:
        yield from (one for one in get_node_tensor_specs(node) if one.mem_offset is not None)
    for _, _, graphs in _graphs_inside(graph_module):
        for graph in graphs:
            yield from _planned_in(graph)


def _place_inside_others(
    tensors: "Sequence[TensorSpec]", names: "Mapping[TensorSpec, str]"
) -> None:
    """Give a place to each tensor that lies inside another one."""
    planned = {*tensors}
    for spec in tensors:
        offset, outermost = 0, spec
        while (base := _base(outermost)) is not None:
            offset, outermost = offset + outermost.storage_base_offset, base
        if outermost is spec:
            continue
        end, there = offset + spec.allocated_memory, outermost.allocated_memory
        if outermost not in planned or not 0 <= offset <= end <= there or offset % spec.alignment:
            raise SpmilpError(
                f"tensor {names[spec]} lies in bytes {offset:,} to {end:,} of "
                f"{names.get(outermost, 'another')}, of {there:,} B; expected multiples of "
                f"{spec.alignment:,} B in a tensor that ExecuTorch plans too"
            )
        spec.mem_id, spec.mem_offset = outermost.mem_id, outermost.mem_offset + offset


def _warn_if_greedy_is_better(packing: PoolPacking, *given: Any) -> None:
    """Say so if a limit ended the search before it found what ExecuTorch finds."""
    from executorch.exir.memory_planning import greedy

    ours, theirs = sum(packing.heights or ()), sum(greedy(*given).bufsizes)
    if theirs < ours:
        warnings.warn(
            f"arenas of {ours:,} B, where ExecuTorch's greedy needs {theirs:,} B, were found in "
            f"{packing.nodes:,} nodes; give MemoryPlanning a larger node_limit",
            stacklevel=3,
        )


def _failure(packing: PoolPacking) -> str:
    """Say why there is no plan."""
    if packing.status is not PackingStatus.INFEASIBLE:
        return (
            f"no plan was found in {packing.nodes:,} nodes of the search, and no proof that there "
            "is none; give MemoryPlanning a larger node_limit, or its banks more bytes"
        )
    lines = ["the tensors do not fit; times are positions of nodes in the graph"]
    if not packing.reasons:
        buffers, pools = packing.problem.buffers, packing.problem.pools
        start, _, live = busiest(buffer.item for buffer in buffers)
        alive = [
            b.name for b in buffers if b.item.lifetimes[0][0] <= start < b.item.lifetimes[0][1]
        ]
        lines.append(
            f"  at most {live:,} B live at one time, at {start} ({quantities.names(alive)}), and "
            f"there are {sum(pool.room for pool in pools):,} B; but no offsets are free for all"
        )
    return "\n".join([*lines, *packing.shortage])
