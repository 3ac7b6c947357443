"""What a finished schedule is worth, straight from the tables."""

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.board import COUNT_RESIDENCIES, COUNT_TRANSFERS, Board
from spmilp.solvers.list_scheduler.extract import makespan_of
from spmilp.solvers.list_scheduler.records import NONE, SET_ASIDE, Ints


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
    is_dram = board.memories["is_dram"] == 1
    moves = board.transfers[: board.counts[COUNT_TRANSFERS]]
    memory = board.residencies["memory"]
    touches = is_dram[memory[moves["source"]]] | is_dram[memory[moves["destination"]]]
    return int(board.slices["bytes"][moves["slice"]][touches].sum())


def _energy(problem: Problem, board: Board) -> int:
    tasks = sum(
        task.energy[problem.machine.cores[int(core)].kind] or 0
        for task, core in zip(problem.tasks, board.tasks["core"], strict=True)
        if task.energy
    )
    moved = zip(_pairs(board), _bytes_of_pairs(board).tolist(), strict=True)
    return tasks + sum(_energy_per_byte(problem, board, pair) * n for pair, n in moved if n)


def _pairs(board: Board) -> list[tuple[int, int]]:
    known = np.argwhere(board.pair_at != NONE)
    pairs = [(int(source), int(destination)) for source, destination in known]
    return sorted(pairs, key=lambda pair: int(board.pair_at[pair]))


def _bytes_of_pairs(board: Board) -> Ints:
    """Return the bytes moved between each pair of memories."""
    moves = board.transfers[: board.counts[COUNT_TRANSFERS]]
    memory = board.residencies["memory"]
    total = np.zeros(board.pairs.size, np.int64)
    pairs = board.pair_at[memory[moves["source"]], memory[moves["destination"]]]
    np.add.at(total, pairs, board.slices["bytes"][moves["slice"]])
    return total


def _energy_per_byte(problem: Problem, board: Board, pair: tuple[int, int]) -> int:
    machine = problem.machine
    position = int(board.pair_at[pair])
    row = board.pairs[position]
    links = board.links[row["links_from"] : row["links_to"]] - len(machine.engines)
    ends = sum(machine.memories[memory].energy_per_byte or 0 for memory in pair)
    return ends + sum(machine.links[int(link)].energy_per_byte or 0 for link in links)


def _peak_spm(problem: Problem, board: Board) -> int:
    rows = board.residencies[: board.counts[COUNT_RESIDENCIES]]
    is_spm = np.array([memory.kind is MemoryKind.SPM for memory in problem.machine.memories])
    rows = rows[rows["slice"] != SET_ASIDE]
    return int((rows["offset"] + rows["bytes"])[is_spm[rows["memory"]]].max(initial=0))
