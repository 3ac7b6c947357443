"""TVM's latency hiding: plans that pass, and what hiding gains."""

from dataclasses import replace

from spmilp.plan.plan import Plan
from spmilp.policies.tvm import Tvm
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from tests.solvers.chains import chain, star


def planned(problem: Problem, *, hides: bool = True) -> Plan:
    plan = Tvm(hides=hides).solve(problem, SolveOptions()).plan
    assert plan is not None
    return plan


def test_hiding_runs_a_task_beside_the_loads_of_the_next() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=6)
    tasks = tuple(replace(task, cycles=(500,)) for task in problem.tasks)
    problem = replace(problem, tasks=tasks)
    hidden, serial = (planned(problem, hides=one) for one in (True, False))

    busy = sum(task.cycles[0] for task in problem.tasks)
    moving = sum(one.end - one.start for one in serial.transfers)
    assert serial.claim.makespan == busy + moving
    assert hidden.claim.makespan < busy + moving / 2
    assert dict(hidden.options)["virtual threads"] == "2"


def test_a_pipelined_engine_sends_while_other_bytes_are_on_their_way() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=6)
    links = tuple(replace(link, latency=40) for link in problem.machine.links)
    spans = []
    for pipelined in (False, True):
        engine = replace(problem.machine.engines[0], channels=1, pipelined=pipelined)
        machine = replace(problem.machine, links=links, engines=(engine,))
        spans.append(planned(replace(problem, machine=machine)).claim.makespan)

    # Each later load and store that waits for the channel alone comes 80 cycles sooner.
    assert spans[0] - spans[1] > 5 * 80


def test_without_room_for_two_threads_there_is_one() -> None:
    plan = planned(chain(star(1, 1 << 16), layers=1, strips=4))
    most = max(one.offset + one.bytes for one in plan.residencies if one.memory != 0)
    tight = planned(chain(star(1, most * 2 // 3), layers=1, strips=4))
    assert dict(tight.options)["virtual threads"] == "1"
    tiny = Tvm().solve(chain(star(1, most // 3), layers=1, strips=4), SolveOptions())
    assert "use smaller tiles" in tiny.reason
