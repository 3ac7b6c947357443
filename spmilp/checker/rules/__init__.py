"""The rules of a valid plan, after ``docs/format.md``; a rule yields what breaks it.

They know the data of machine, problem and plan, the routes of a machine and the strides of a copy
(which define what those mean), and nothing of solvers, packing, networks or arrays.

    structure    references and lists are complete, before all other rules
    tasks        rules 1 to 5: able cores, exact cycles, order, what tasks read and write
    memory       rules 6 and 9: sizes, memories, bytes shared at a time, DRAM tensors
    transfers    rule 7: data, engine, route, duration, channels, link rates
    ends         rules 8, 10, 11: outputs, no value lost, stated quantities, pins
    streams      rule 12: prologue, what is permanent, instances, tensors handed over, states
    case         what rules look up
    sweeps       what overlaps in time and in bytes
"""

from collections.abc import Callable, Iterator

from spmilp.checker.rules import ends, memory, streams, tasks, transfers
from spmilp.checker.rules.case import Case, Finding
from spmilp.checker.rules.structure import structure

__all__ = ["RULES", "Case", "Finding", "structure"]

RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    tasks.able_core,
    tasks.exact_cycles,
    tasks.one_task_at_a_time,
    tasks.precedence,
    tasks.operands_served,
    tasks.filled_as_stated,
    tasks.results_have_room,
    tasks.scratch_has_room,
    memory.exact_size,
    memory.inside_memory,
    memory.no_shared_bytes,
    memory.in_place,
    transfers.transfer_data,
    transfers.transfer_route,
    transfers.transfer_limits,
    transfers.channels,
    transfers.link_rates,
    ends.outputs_stored,
    ends.no_value_lost,
    memory.at_its_place,
    memory.dram_tensors,
    ends.claims,
    ends.pinned_core,
    ends.pinned_time,
    ends.pinned_memory,
    ends.pinned_address,
    ends.pinned_resident,
    streams.prologue,
    streams.permanent,
    streams.instances,
    streams.handed_over,
    streams.state,
)
"""All but :func:`structure`, on which they rely."""
