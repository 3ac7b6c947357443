"""OnSRAM: its order, figure of merit, whole lives, and overwriting."""

from dataclasses import replace

from benchmarks.exact.cosma.setting import problem_of
from spmilp.checker.check import check
from spmilp.policies.cosma import Network, Operator
from spmilp.policies.one_after_another import Setting
from spmilp.policies.onsram import OnSram, by_merit, pinned_in_turn
from spmilp.policies.structures import TaskStructures
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus


def one_core(
    sizes: tuple[int, ...], operators: tuple[tuple[tuple[int, ...], int], ...], budget: int
) -> Problem:
    """Return whole tensors on one scratchpad; the tensors that nothing reads are outputs."""
    read = {tensor for reads, _ in operators for tensor in reads}
    network = Network(
        name="by hand",
        sizes=sizes,
        operators=tuple(
            Operator(name=f"op{index}", reads=reads, writes=writes)
            for index, (reads, writes) in enumerate(operators)
        ),
        outputs=frozenset(writes for _, writes in operators if writes not in read),
    )
    return problem_of(network, budget)


def with_cycles(problem: Problem, cycles: int) -> Problem:
    tasks = tuple(replace(task, cycles=(cycles,)) for task in problem.tasks)
    return replace(problem, tasks=tasks)


RIVALS = (
    (64, 640, 320, 512, 64, 64),
    (((0,), 1), ((0,), 2), ((0,), 3), ((2,), 4), ((1, 4), 5)),
)
"""Tensor 1 is large and lives long, tensor 2 is small and lives shortly; while tensor 3 is written
there is room for one of them."""


def test_the_figure_of_merit_knows_no_sizes() -> None:
    problem = with_cycles(one_core(*RIVALS, budget=1300), 1)
    structures = TaskStructures(Setting(problem, "onsram"), range(len(problem.tasks)))

    pins = pinned_in_turn(structures, by_merit(structures))

    assert {structures.all[index].buffer for index in pins} == {0, 2, 4}


def in_place(problem: Problem) -> Problem:
    tasks = tuple(
        replace(task, in_place=tuple((read, task.writes[0]) for read in task.reads[:1]))
        for task in problem.tasks
    )
    return replace(problem, tasks=tasks)


def test_a_result_overwrites_an_operand_whose_life_ends() -> None:
    chain = in_place(one_core((640,) * 4, (((0,), 1), ((1,), 2), ((2,), 3)), budget=640))

    result = OnSram().solve(chain, SolveOptions())

    assert result.plan is not None
    assert check(chain, result.plan) == ()
    assert result.plan.claim.dram_traffic == 2 * 640


def test_a_task_that_does_not_fit_with_its_streams_is_refused_with_both_numbers() -> None:
    """The task reads a part of a buffer and the whole: streamed, they lie beside each other."""
    problem = one_core((640, 640), (((0,), 1),), budget=1280)
    part = replace(problem.slices[0], index=2, extent=(320,), bytes=320)
    task = replace(problem.tasks[0], reads=(0, 2))
    problem = replace(problem, slices=(*problem.slices, part), tasks=(task,))

    result = OnSram().solve(problem, SolveOptions())

    assert result.status is SolveStatus.UNKNOWN
    assert "streams 1600 B > 1280 B in spm" in result.reason
