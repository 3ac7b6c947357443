"""The rules of a valid plan, after ``docs/format.md``: each generator yields violations.

They know the data of machine, problem and plan, the routes of a machine and the strides of a copy
(which define what those mean), and nothing of solvers, packing, networks or arrays.

    structure         references and lists are complete, before all other rules
    tasks             rules 1 to 3: able cores, exact cycles, order
    operands          rules 4 and 5: what tasks read and write
    bounds, sharing   rule 6: sizes, memories, bytes shared at a time
    transfers         rule 7: data, engine, route and duration of each transfer
    capacity          rule 7: channels and link rates
    outputs           rule 8: outputs at the end, no value lost
    dram              rule 9: DRAM tensors
    claims            rule 10: stated quantities
    pins              rule 11: what is pinned
    case, overlap     what rules look up, and sweeps for what overlaps
"""

from collections.abc import Callable, Iterator

from spmilp.checker.rules.bounds import exact_size, inside_memory
from spmilp.checker.rules.capacity import channels, link_rates
from spmilp.checker.rules.case import Case
from spmilp.checker.rules.claims import claims
from spmilp.checker.rules.dram import at_its_place, dram_tensors
from spmilp.checker.rules.operands import (
    filled_as_stated,
    operands_served,
    results_have_room,
    scratch_has_room,
)
from spmilp.checker.rules.outputs import no_value_lost, outputs_stored
from spmilp.checker.rules.pins import (
    pinned_address,
    pinned_core,
    pinned_memory,
    pinned_resident,
    pinned_time,
)
from spmilp.checker.rules.sharing import shared_bytes
from spmilp.checker.rules.structure import structure
from spmilp.checker.rules.tasks import able_core, exact_cycles, one_task_at_a_time, precedence
from spmilp.checker.rules.transfers import transfer_data, transfer_limits, transfer_route
from spmilp.checker.violation import Violation

__all__ = ["RULES", "Case", "structure"]

RULES: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    able_core,
    exact_cycles,
    one_task_at_a_time,
    precedence,
    operands_served,
    filled_as_stated,
    results_have_room,
    scratch_has_room,
    exact_size,
    inside_memory,
    shared_bytes,
    transfer_data,
    transfer_route,
    transfer_limits,
    channels,
    link_rates,
    outputs_stored,
    no_value_lost,
    at_its_place,
    dram_tensors,
    claims,
    pinned_core,
    pinned_time,
    pinned_memory,
    pinned_address,
    pinned_resident,
)
"""All but :func:`structure`, on which they rely."""
