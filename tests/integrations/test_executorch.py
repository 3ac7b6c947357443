"""ExecuTorch plans its memory with the packer, and its programs compute what they did."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from spmilp.errors import ArgumentError, DoesNotFitError, SpmilpError
from spmilp.integrations.executorch import MemoryPlanning
from spmilp.packing import PackingStatus

pytest.importorskip("executorch.exir", reason="pip install 'spmilp[executorch]'")

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy, naive
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from executorch.runtime import Runtime
from torch import Tensor, nn

from tests.integrations import networks

GREEDY, NAIVE = (MemoryPlanningAlgorithmSuite([each]) for each in (greedy, naive))


def programs(
    network: nn.Module, given: Sequence[Tensor], *algorithms: Any, **how: Any
) -> list[Any]:
    exported = torch.export.export(network.eval(), (*given,))
    passes = [MemoryPlanningPass(memory_planning_algo=each, **how) for each in algorithms]
    configs = [ExecutorchBackendConfig(memory_planning_pass=one) for one in passes]
    return [to_edge(exported).to_executorch(config) for config in configs]


def arenas(program: Any) -> list[int]:
    sizes: list[int] = program.executorch_program.execution_plan[0].non_const_buffer_sizes
    return sizes


def outputs(program: Any, given: Sequence[Tensor]) -> Tensor:
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    (answer,) = method.execute([*given])
    return answer.clone()


NETWORKS: dict[str, Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]] = {
    "mobilenet_v2": lambda: networks.mobilenet_v2(32, scale=0.25),
    "encoder": lambda: networks.encoder(16, layers=2, width=32, heads=4),
    "unet": lambda: networks.unet(32, width=4),
}


@pytest.mark.full
@pytest.mark.parametrize("name", NETWORKS)
def test_arenas_are_proven_least_and_programs_compute_what_they_did(name: str) -> None:
    torch.manual_seed(0)
    network, given = NETWORKS[name]()
    planning = MemoryPlanning()
    ours, theirs, apart = programs(network, given, planning, GREEDY, NAIVE)

    assert planning.packings[-1].status is PackingStatus.OPTIMAL
    assert arenas(ours) == [0, planning.packings[-1].heights_bound]
    assert arenas(ours)[1] <= arenas(theirs)[1] < arenas(apart)[1]
    assert (arenas(ours) == arenas(theirs)) == (name != "encoder")  # 28,672 B and 34,816 B
    answer = outputs(ours, given)
    assert torch.equal(answer, outputs(theirs, given))
    torch.testing.assert_close(answer, network(*given))


def test_the_same_network_gives_the_same_program() -> None:
    network, given = networks.encoder(8, layers=1, width=16, heads=2)
    first, second = programs(network, given, MemoryPlanning(), MemoryPlanning())
    assert first.buffer == second.buffer


@pytest.mark.parametrize("outside", [["input"], ["output"], ["input", "output"]])
def test_inputs_and_outputs_of_the_caller_take_no_bytes(outside: list[str]) -> None:
    network, given = networks.encoder(8, layers=1, width=16, heads=2)
    how = {f"alloc_graph_{each}": False for each in outside}
    planning = MemoryPlanning()
    ours, theirs = programs(network, given, planning, GREEDY, **how)

    names = {buffer.name for buffer in planning.packings[0].problem.buffers}
    assert ("x" in names) == ("input" not in outside)
    assert arenas(ours)[1] <= arenas(theirs)[1]
    if outside == ["input"]:
        torch.testing.assert_close(outputs(ours, given), network(*given))


def test_a_program_runs_in_two_banks_of_which_the_cheaper_is_full() -> None:
    network, given = networks.encoder(16, layers=1, width=32, heads=4)
    planning = MemoryPlanning({1: "tcm=8K", 3: "sram=64K,cost=1,align=128"})
    (ours,) = programs(network, given, planning)

    (packing,) = planning.packings
    assert packing.status is PackingStatus.OPTIMAL
    assert (packing.cost, arenas(ours)[1:3]) == (65536, [8192, 0])
    torch.testing.assert_close(outputs(ours, given), network(*given))


def test_what_does_not_fit_reaches_the_caller_with_both_numbers_and_the_tensors() -> None:
    network, given = networks.encoder(16, layers=1, width=32, heads=4)
    with pytest.raises(DoesNotFitError) as raised:
        programs(network, given, MemoryPlanning({1: "tcm=20000", 2: "sram=2K,cost=1"}))
    message = str(raised.value)
    assert "4 buffers aten_add_tensor, aten_native_layer_norm_default_1[0], " in message
    assert "need 28,672 B, and fit only into tcm, sram, with 22,048 B: 6,624 B too man" in message


class Branches(nn.Module):
    """Two conditions, the results of which are needed at the end; the first is one in itself."""

    def forward(self, x: Tensor) -> Tensor:
        def twice(a: Tensor) -> Tensor:
            inner = torch.cond(a.sum() > 9, torch.neg, torch.exp, (a * 2,))
            return (a * 2 + a.relu()).exp() + inner

        one = torch.cond(x.sum() > 0, twice, torch.neg, (x,))
        other = torch.cond(x.sum() > 1, twice, torch.neg, (one + x,))
        return (one + x * 3).relu() * one + other


@pytest.mark.parametrize("banks", [None, {1: "tcm=1K", 2: "sram=8K,cost=1"}])
@pytest.mark.parametrize("sign", [1, -1])
def test_results_of_a_condition_outlive_the_next_one(
    banks: dict[int, str] | None, sign: int
) -> None:
    """Graphs of all conditions begin at 0 with greedy; the second overwrites (executorch#21494)."""
    given = (torch.full((4, 8), sign * 0.1),)
    (ours,) = programs(Branches(), given, MemoryPlanning(banks))
    torch.testing.assert_close(outputs(ours, given), Branches()(*given))


def tensor(size: int, first: int, last: int, **fields: Any) -> Any:
    """Return a tensor that nodes ``first`` to ``last`` need."""
    spec: Any = TensorSpec(torch.uint8, torch.Size([size]))
    spec.lifetime = [first, last]
    for name, value in fields.items():
        setattr(spec, name, value)
    return spec


def planned(planning: Any, *specs: Any, alignment: int = 16, padding: int = 0) -> Any:
    """Plan tensors by name ``t0``, ``t1``, ...; return the bytes of each arena."""
    graph = torch.fx.Graph()
    for i, spec in enumerate(specs):
        graph.placeholder(f"t{i}").meta["spec"] = spec
    graph.output(())
    return planning(alignment, [*specs], torch.fx.GraphModule({}, graph), None, padding)


def test_a_hole_below_that_greedy_leaves_is_used() -> None:
    """The third could lie where the second was (executorch#22508)."""
    specs = [tensor(160, 0, 0), tensor(96, 2, 4), tensor(64, 5, 8), tensor(64, 3, 6)]
    assert planned(GREEDY, *specs) == [0, 224]
    assert planned(MemoryPlanning(), *(tensor(s.nbytes(), *s.lifetime) for s in specs)) == [0, 160]


def test_two_short_tensors_take_the_bank_that_a_large_one_takes_with_banked_greedy() -> None:
    """Each into the fastest bank that can hold it (executorch#21821): 128 B outside, not 96."""
    banked = pytest.importorskip("executorch.exir.banked_memory_planning", reason="since 1.5")
    there = banked.TargetMemoryMap([banked.Bank("tcm", 112, 1), banked.Bank("sram", 1024, 2)])
    theirs = MemoryPlanningAlgorithmSuite([banked.BankedGreedy(there)])
    sizes = ((96, 0, 1), (64, 0, 0), (64, 1, 1))
    for planning, places in (
        (theirs, [1, 2, 2]),
        (MemoryPlanning({1: "tcm=112", 2: "sram=1K,cost=1"}), [2, 1, 1]),
    ):
        specs = [tensor(*size) for size in sizes]
        planned(planning, *specs)
        assert [spec.mem_id for spec in specs] == places


def test_pinned_tensors_keep_their_arena_and_one_without_a_bank_holds_them_alone() -> None:
    specs = [tensor(80, 0, 2, mem_id=1), tensor(90, 0, 2), tensor(10, 0, 2, mem_id=5)]
    sizes = planned(MemoryPlanning({1: "tcm=128", 2: "sram=256,cost=1"}), *specs)
    assert [spec.mem_id for spec in specs] == [1, 2, 5]
    assert sizes == [0, 80, 96, 0, 0, 16]


def test_offsets_keep_the_alignment_of_graph_and_bank_and_padding_stays_free() -> None:
    banks = {1: "tcm=320,align=48"}
    specs = [tensor(50, 0, 2), tensor(30, 1, 2), tensor(0, 0, 1)]
    assert planned(MemoryPlanning(banks), *specs, alignment=32, padding=64) == [0, 96 + 32 + 64]
    assert sorted(spec.mem_offset % 96 for spec in specs) == [0, 0, 0]
    more = [tensor(50, 0, 2), tensor(30, 1, 2)]
    with pytest.raises(DoesNotFitError, match="96 B, and fit only into tcm, with 80 B: 16 B too"):
        planned(MemoryPlanning({1: "tcm=144"}), *more, alignment=32, padding=64)


def test_a_tensor_inside_another_one_moves_with_it() -> None:
    base = tensor(96, 0, 4)
    inner = tensor(32, 1, 2, storage_base=base, storage_base_offset=16)
    innermost = tensor(16, 2, 2, storage_base=inner, storage_base_offset=16)
    assert planned(MemoryPlanning(), tensor(64, 0, 4), innermost, inner, base) == [0, 160]
    assert [inner.mem_offset, innermost.mem_offset] == [base.mem_offset + 16, base.mem_offset + 32]

    beyond = tensor(96, 1, 2, storage_base=base, storage_base_offset=16)
    with pytest.raises(SpmilpError, match="t1 lies in bytes 16 to 112 of t0, of 96 B; expected"):
        planned(MemoryPlanning(), base, beyond)
    with pytest.raises(SpmilpError, match="t0 lies in bytes 16 to 48 of another, of 96 B"):
        planned(MemoryPlanning(), inner)


def test_live_bytes_that_fit_though_no_offsets_do_are_said() -> None:
    with pytest.raises(
        DoesNotFitError, match=r"at most 96 B live .* \(t0, t1\), and there are 100 B"
    ):
        planned(MemoryPlanning({1: "tcm=100,align=64"}), tensor(48, 0, 1), tensor(48, 0, 1))


def test_tensors_of_other_devices_have_no_bank() -> None:
    devices = getattr(import_module("executorch.exir.schema"), "DeviceType", None)
    if devices is None:
        pytest.skip("before 1.5 ExecuTorch knows no devices")
    spec = tensor(16, 0, 1, device=devices.CUDA)
    assert planned(MemoryPlanning(), spec) == [0, 16]
    with pytest.raises(SpmilpError, match="banks hold tensors of the CPU alone; some are on CUDA"):
        planned(MemoryPlanning({1: "tcm=1K"}), tensor(16, 0, 1, device=devices.CUDA))


def test_a_limit_that_leaves_more_than_greedy_needs_is_said() -> None:
    given = (
        "4-6:6 4-7:2 2-4:6 6-7:5 8-10:3 0-0:6 1-2:6 7-8:3 7-10:2 8-8:6 2-5:2 4-6:2 7-9:6 9-10:4 "
        "8-10:5 4-7:3 1-3:5"
    )
    specs = [
        tensor(16 * int(size), int(first), int(last))
        for first, last, size in (re.split("[-:]", each) for each in given.split())
    ]
    with pytest.warns(UserWarning, match="arenas of 416 B, where ExecuTorch's greedy needs 400 B"):
        assert planned(MemoryPlanning(node_limit=1), *specs) == [0, 416]
    assert planned(MemoryPlanning(), *specs) == [0, 400]


@pytest.mark.full
def test_the_page_shows_what_its_example_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "other_tools.md").read_text(encoding="utf-8")
    ((code, shown),) = re.findall(
        r"```python\n(import torch\n.*?)```\n\n```text\n(.*?)```", page, flags=re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "other_tools.md", "exec"), {})
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"banks": {0: "tcm=1K"}}, "0 is no mem_id of tensors"),
        ({"banks": {1: 1024}}, "1024 for mem_id 1, expected a Pool or a text"),
        ({"banks": {1: "tcm"}}, "'tcm' is no pool; write NAME=BYTES"),
        ({"banks": {1: "tcm=1K", 2: "tcm=2K"}}, "pools tcm, tcm: expected one, each name once"),
        ({"time_limit": "soon"}, "'soon' is no duration"),
        ({"node_limit": 0}, "node_limit is 0"),
    ],
)
def test_what_is_malformed_is_said_at_once(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        MemoryPlanning(**given)
