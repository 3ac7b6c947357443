"""All moves by name."""

from collections.abc import Callable

from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.core_moves import (
    assign_as_another,
    move_a_task,
    move_to_an_idle_core,
    move_to_the_data,
    permute_cores,
    swap_two_tasks,
)
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.order_moves import (
    advance_a_task,
    fill_a_gap,
    run_as_another,
    shift_a_task,
    shift_an_operator,
    sort_a_stretch,
    sort_by_time,
)
from spmilp.solvers.local_search.prefetch_moves import (
    change_a_weight,
    prefetch_a_task,
    prefetch_an_operator,
    prefetch_by_share,
)

Move = Callable[[NeighbourhoodState], Candidate | None]

MOVES: dict[str, Move] = {
    "shift task": shift_a_task,
    "shift operator": shift_an_operator,
    "advance task": advance_a_task,
    "sort stretch": sort_a_stretch,
    "sort by time": sort_by_time,
    "fill gap": fill_a_gap,
    "move task": move_a_task,
    "move to data": move_to_the_data,
    "move to idle": move_to_an_idle_core,
    "swap tasks": swap_two_tasks,
    "permute cores": permute_cores,
    "assign as another": assign_as_another,
    "run as another": run_as_another,
    "prefetch task": prefetch_a_task,
    "prefetch operator": prefetch_an_operator,
    "prefetch by share": prefetch_by_share,
    "change weight": change_a_weight,
}
