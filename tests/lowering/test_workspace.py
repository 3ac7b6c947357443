"""The workspace of kernels is scratch of the tasks, and exports take it from there."""

from dataclasses import replace
from pathlib import Path

import pytest

import spmilp
from lowering.unet import write_int8_unet
from spmilp.errors import DoesNotFitError
from spmilp.export.packed import footprint
from spmilp.export.subject import Subject
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine
from spmilp.pipeline import problem_of

GAP9 = load_machine("gap9").machine


def stating(workspace: tuple[tuple[str, int], ...] | None) -> Machine:
    """Return gap9 with kernels of its own."""
    return replace(GAP9, kinds=tuple(replace(one, workspace=workspace) for one in GAP9.kinds))


@pytest.fixture(scope="module")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_int8_unet(tmp_path_factory.mktemp("unet") / "unet.onnx")


def test_what_an_int8_unet_takes_of_a_scratchpad_is_all_in_the_plan(unet: Path) -> None:
    result = spmilp.solve(unet, GAP9, solver="list", effort=1)
    assert result.violations == ()
    assert sum(task.scratch > 0 for task in result.problem.tasks) > 8
    taken = result.footprint
    assert taken is not None
    assert taken.workspace == 0
    sizes = {memory.name: memory.size for memory in GAP9.memories}
    assert all(used <= (sizes[name] or used) for name, used in taken.memories)
    assert "workspace" not in "".join(taken.lines())


def test_a_machine_says_what_its_own_kernels_need(unet: Path) -> None:
    own, none = stating((("Conv", 800), ("*", 8))), stating((("*", 0),))
    scratch = {task.scratch for task in problem_of(unet, own, solver="list", effort=1).tasks}
    assert scratch == {800, 8}
    result = spmilp.solve(unet, none, solver="list", effort=1)
    assert all(task.scratch == 0 for task in result.problem.tasks)
    taken = result.footprint
    assert taken is not None
    assert taken.workspace > 0
    assert f"{taken.workspace:,} B of workspace for each core that no scratch holds" in "".join(
        taken.lines()
    )


def test_a_problem_without_scratch_is_exported_with_a_workspace_beside_it(unet: Path) -> None:
    result = spmilp.solve(unet, stating((("*", 0),)), solver="list", effort=1)
    assert result.origin is not None
    assert result.plan is not None
    old = replace(result.problem, machine=GAP9)
    given = Subject(problem=old, plan=result.plan, network=result.origin.network)
    assert footprint(given).workspace > 0


def test_a_task_that_fits_nowhere_for_its_workspace_says_so(unet: Path) -> None:
    sizes = {"l1": 400}
    small = tuple(
        replace(one, size=sizes.get(one.name, one.size), reserved=()) for one in GAP9.memories
    )
    machine = replace(stating((("*", 400),)), memories=small)
    with pytest.raises(DoesNotFitError, match=r"workspace of its kernels 400 B.*holds 400 B"):
        problem_of(unet, machine, solver="list", effort=1)
