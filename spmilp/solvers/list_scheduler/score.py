"""What a finished schedule is worth, straight from the tables."""

from fractions import Fraction

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.extract import makespan_of
from spmilp.solvers.list_scheduler.records import NONE
from spmilp.solvers.list_scheduler.state import COUNT_RESIDENCIES, COUNT_TRANSFERS, Board


def score(problem: Problem, board: Board) -> tuple[int, ...]:
    """Return the schedule's quantities in the problem's order; less is better."""
    measures = {
        Quantity.MAKESPAN: _makespan,
        Quantity.DRAM_TRAFFIC: _dram_traffic,
        Quantity.ENERGY: _energy,
        Quantity.PEAK_SPM: _peak_spm,
    }
    return tuple(measures[quantity](problem, board) for quantity in problem.objective.order)


def _makespan(_problem: Problem, board: Board) -> int:
    return makespan_of(board)


def _dram_traffic(_problem: Problem, board: Board) -> int:
    is_dram = board.machine.memories["is_dram"] == 1
    moves = board.state.transfers[: board.state.counts[COUNT_TRANSFERS]]
    memory = board.state.residencies["memory"]
    touches = is_dram[memory[moves["source"]]] | is_dram[memory[moves["destination"]]]
    return int(board.problem.slices["bytes"][moves["slice"]][touches].sum())


def _energy(problem: Problem, board: Board) -> int:
    tasks = sum(
        task.energy[problem.machine.cores[int(core)].kind] or 0
        for task, core in zip(problem.tasks, board.state.tasks["core"], strict=True)
        if task.energy
    )
    moves = board.state.transfers[: board.state.counts[COUNT_TRANSFERS]]
    per_byte = np.array([_energy_per_byte(problem, board, pair) for pair in _pairs(board)], object)
    sizes = board.problem.slices["bytes"][moves["slice"]]
    return tasks + sum(int(per_byte[p] * int(n)) for p, n in zip(moves["pair"], sizes, strict=True))


def _pairs(board: Board) -> list[tuple[int, int]]:
    known = np.argwhere(board.machine.pair != NONE)
    pairs = [(int(source), int(destination)) for source, destination in known]
    return sorted(pairs, key=lambda pair: int(board.machine.pair[pair]))


def _energy_per_byte(problem: Problem, board: Board, pair: tuple[int, int]) -> Fraction:
    machine = problem.machine
    position = int(board.machine.pair[pair])
    links = board.machine.links[
        board.machine.links_from[position] : board.machine.links_from[position + 1]
    ]
    ends = sum(machine.memories[memory].energy_per_byte or 0 for memory in pair)
    return Fraction(ends + sum(machine.links[int(link)].energy_per_byte or 0 for link in links))


def _peak_spm(problem: Problem, board: Board) -> int:
    rows = board.state.residencies[: board.state.counts[COUNT_RESIDENCIES]]
    is_spm = np.array([memory.kind is MemoryKind.SPM for memory in problem.machine.memories])
    return int((rows["offset"] + rows["bytes"])[is_spm[rows["memory"]]].max(initial=0))
