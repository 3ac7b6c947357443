"""Which move to try next: those that have paid for their time lately."""

from collections.abc import Callable

import numpy as np

from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.core_moves import (
    assign_as_another,
    move_a_task,
    move_to_an_idle_core,
    move_to_the_data,
    swap_two_tasks,
    turn_an_operator,
)
from spmilp.solvers.local_search.neighbourhood_state import NeighbourhoodState
from spmilp.solvers.local_search.order_moves import (
    fill_a_gap,
    pull_a_task,
    run_as_another,
    shift_a_task,
    shift_an_operator,
    sort_a_stretch,
    sort_by_time,
)
from spmilp.solvers.local_search.space_moves import (
    change_a_weight,
    load_a_task_ahead,
    load_an_operator_ahead,
    load_by_share,
)

Move = Callable[[NeighbourhoodState], Candidate | None]

MOVES: dict[str, Move] = {
    "shift task": shift_a_task,
    "shift operator": shift_an_operator,
    "pull task": pull_a_task,
    "sort stretch": sort_a_stretch,
    "sort by time": sort_by_time,
    "fill gap": fill_a_gap,
    "move task": move_a_task,
    "move to data": move_to_the_data,
    "move to idle": move_to_an_idle_core,
    "swap tasks": swap_two_tasks,
    "turn operator": turn_an_operator,
    "assign as another": assign_as_another,
    "run as another": run_as_another,
    "load task ahead": load_a_task_ahead,
    "load operator ahead": load_an_operator_ahead,
    "load by share": load_by_share,
    "change weight": change_a_weight,
}

LEAST_SHARE = 0.25
"""Of an equal share of the tries, what every move gets."""
MEMORY = 0.97
"""How much of a move's record is left after its next try."""


class Choice:
    """Draws moves in proportion to what they gained, over what they were tried, both fading.

    The gain is a number of ranks, not of cycles: 1 for a better incumbent, less for what is merely
    accepted. So a lucky jump does not rule out the rest.
    """

    def __init__(self, names: tuple[str, ...], rng: np.random.Generator) -> None:
        self._names = names
        self._rng = rng
        self._gain = dict.fromkeys(names, 1.0)
        self._tried = dict.fromkeys(names, 1.0)

    def draw(self) -> str:
        """Return the name of the next move."""
        rates = np.array([self._gain[name] / self._tried[name] for name in self._names])
        shares = (1 - LEAST_SHARE) * rates / rates.sum() + LEAST_SHARE / len(self._names)
        return self._names[int(self._rng.choice(len(self._names), p=shares))]

    def learn(self, name: str, gain: float) -> None:
        """Remember what a move was good for."""
        self._gain[name] = MEMORY * self._gain[name] + gain
        self._tried[name] = MEMORY * self._tried[name] + 1.0
