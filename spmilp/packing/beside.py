"""CP-SAT in a thread of its own, beside the search."""

import threading
from typing import Any

from spmilp.packing.cliques import solve_by_cliques
from spmilp.packing.clock import Clock
from spmilp.packing.search.arrays import Given, Ints
from spmilp.packing.search.run import Outcome, Part

NO_LIMIT = 1e9


class CliquesBeside:
    """One call of CP-SAT under way; it and the compiled search run without the interpreter lock."""

    def __init__(
        self, given: Given, part_and_latest: tuple[Part, Ints], clock: Clock, seed: int
    ) -> None:
        self._answer: tuple[Outcome, Ints | None] = (Outcome.PAUSED, None)
        self._solver: list[Any] = []
        self._thread = threading.Thread(
            target=self._work, args=(given, part_and_latest, clock, seed), daemon=True
        )
        self._thread.start()

    def answer(self) -> tuple[Outcome, Ints | None]:
        """Return what is known by now."""
        return self._answer

    def stop(self) -> None:
        """Ask the solver to stop and wait for it."""
        for solver in self._solver:
            solver.stop_search()
        self._thread.join()

    def _work(
        self, given: Given, part_and_latest: tuple[Part, Ints], clock: Clock, seed: int
    ) -> None:
        self._answer = solve_by_cliques(
            given,
            *part_and_latest,
            deterministic_time=NO_LIMIT,
            seconds=clock.seconds_left,
            seed=seed,
            announce=self._solver.append,
        )
