"""Quantities of a finished schedule, straight from its tables."""

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import SET_ASIDE
from spmilp.solvers.kernels.schedule_state import ScheduleState


class Scorer:
    """Values schedules of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        kinds = len(problem.machine.kinds)
        energies = [[one or 0 for one in task.energy or (0,) * kinds] for task in problem.tasks]
        self._energies = np.array(energies, np.int64).reshape(len(problem.tasks), kinds)
        self._is_spm = np.array([one.kind is MemoryKind.SPM for one in problem.machine.memories])
        self._per_byte: dict[tuple[int, int], int] = {}
        self._measures = {
            Quantity.MAKESPAN: ScheduleState.makespan,
            Quantity.DRAM_TRAFFIC: self._dram_traffic,
            Quantity.ENERGY: self._energy,
            Quantity.PEAK_SPM: self._peak_spm,
        }

    def __call__(self, state: ScheduleState) -> tuple[int, ...]:
        """Return the schedule's quantities in the problem's order; less is better."""
        return tuple(self._measures[quantity](state) for quantity in self._problem.objective.order)

    def _dram_traffic(self, state: ScheduleState) -> int:
        is_dram = state.memories["is_dram"] == 1
        moves = state.made_transfers()
        memory = state.residencies["memory"]
        touches = is_dram[memory[moves["source"]]] | is_dram[memory[moves["destination"]]]
        return int(state.slices["bytes"][moves["slice"]][touches].sum())

    def _energy(self, state: ScheduleState) -> int:
        kind = state.cores["kind"][state.tasks["core"]]
        tasks = int(self._energies[np.arange(kind.size), kind].sum())
        moves = state.made_transfers()
        memory = state.residencies["memory"]
        memories = len(state.memories)
        ends = memory[moves["source"]] * memories + memory[moves["destination"]]
        used, of_pair = np.unique(ends, return_inverse=True)
        total = np.zeros(used.size, np.int64)
        np.add.at(total, of_pair, state.slices["bytes"][moves["slice"]])
        pairs = (divmod(pair, memories) for pair in used.tolist())
        moved = zip(pairs, total.tolist(), strict=True)
        return tasks + sum(self._energy_per_byte(state, pair) * count for pair, count in moved)

    def _energy_per_byte(self, state: ScheduleState, pair: tuple[int, int]) -> int:
        if pair not in self._per_byte:
            machine = self._problem.machine
            row = state.pairs[int(state.pair_at[pair])]
            links = state.links[row["links_from"] : row["links_to"]] - len(machine.engines)
            ends = sum(machine.memories[memory].energy_per_byte or 0 for memory in pair)
            route = sum(machine.links[int(link)].energy_per_byte or 0 for link in links)
            self._per_byte[pair] = ends + route
        return self._per_byte[pair]

    def _peak_spm(self, state: ScheduleState) -> int:
        rows = state.made_residencies()
        rows = rows[rows["slice"] != SET_ASIDE]
        return int((rows["offset"] + rows["bytes"])[self._is_spm[rows["memory"]]].max(initial=0))
