"""Orders of tasks, and rules mixed by what each operator is worth under them."""

from dataclasses import replace
from itertools import product as product_of

import numpy as np

from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task, Tile
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.orders import (
    layer_by_layer,
    operand_stationary,
    round_robin,
)
from spmilp.solvers.schedule.portfolio import Portfolio
from tests.solvers.chains import chain, star


def product(rows: int, columns: int, row_bytes: int, column_bytes: int) -> Problem:
    """Return a matrix product in row-major tiles, behind the tasks that compute its rows."""
    sizes = [row_bytes] * rows + [column_bytes] * columns
    tensors = tuple(
        DramTensor(
            index=n, name=f"w{n}", kind=BufferKind.WEIGHT, memory=0, shape=(column_bytes,), item=1
        )
        for n in range(columns)
    )
    buffers = tuple(
        Buffer(
            index=n,
            name=f"b{n}",
            kind=BufferKind.INTERMEDIATE if n < rows else BufferKind.WEIGHT,
            shape=(size,),
            starts_in=None if n < rows else 0,
            ends_in=None,
            place=None if n < rows else Place(n - rows, (0,)),
        )
        for n, size in enumerate(sizes)
    )
    slices = tuple(
        Slice(index=n, buffer=n, start=(0,), extent=(size,), bytes=size)
        for n, size in enumerate(sizes)
    )
    tasks = [
        Task(
            index=row, name=f"r{row}", cycles=(10,), reads=(), writes=(row,), tile=tile("r", row, 0)
        )
        for row in range(rows)
    ]
    for row, column in product_of(range(rows), range(columns)):
        tasks.append(
            Task(
                index=len(tasks),
                name=f"t{row}{column}",
                cycles=(10,),
                reads=(row, rows + column),
                writes=(),
                tile=tile("t", row, column),
            )
        )
    base = chain(star(2, 4096), layers=1, strips=1)
    return replace(base, tensors=tensors, buffers=buffers, slices=slices, tasks=tuple(tasks))


def tile(of: str, row: int, column: int) -> Tile:
    """Return where a tile of one element lies."""
    return Tile(of=of, box=((row, row + 1), (column, column + 1)))


def test_the_larger_operand_is_gone_through_once() -> None:
    large_weights = product(2, 3, row_bytes=10, column_bytes=100)
    large_rows = product(2, 3, row_bytes=1000, column_bytes=10)

    assert layer_by_layer(large_weights).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert operand_stationary(large_weights).tolist() == [0, 1, 2, 5, 3, 6, 4, 7]
    assert operand_stationary(large_rows).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_cores_take_turns_within_a_layer_and_layers_do_not_mix() -> None:
    problem = chain(star(2, 4096), layers=2, strips=4)
    cores = np.array([0, 0, 1, 1] * 2)

    assert operand_stationary(problem).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert round_robin(problem, cores).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert round_robin(problem, np.full(8, -1)).tolist() == operand_stationary(problem).tolist()


def test_only_the_rules_that_are_asked_for_are_tried() -> None:
    problem = chain(star(2, 1400), layers=4, strips=12)
    only = [("locality", "round_robin"), ("contiguous", "critical_path")]

    found = Portfolio(problem, Runner(problem), only)

    assert [str(one.trial) for one in found if one] == [
        "locality/round_robin",
        "contiguous/critical_path",
    ]
