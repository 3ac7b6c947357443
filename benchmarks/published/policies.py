"""Every published policy on the same networks, beside ``auto``: checked, compared, replayed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import mean
from time import process_time

from benchmarks.bench.suite import ModelOnMachine, load_suite, make_problem
from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.checker.values.compare import replay_plan
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver, list_solvers, solver_names
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Pace

SECONDS = 4.0
"""Of the processor, for each policy on each row; ``auto`` has as long."""

LONGER = 20.0
"""For ``auto`` on a row on which a policy is better by then."""

NETWORKS = (
    "ds_cnn_int8-gap9-dram0.25",
    "resnet8_int8-edge16",
    "autoencoder_int8-gap9",
    "tiny_lstm_f32-mesh4x4-dram0.25",
    "tiny_gru_f32-mesh4x4",
    "resnet8_int8-xdna1",
    "ds_cnn_f16-xdna1-dram0.25",
    "resnet8_int8-gap9-dram0.25-spm0.5",
    "mobilenetv1_025_int8-gap9",
    "ds_cnn_f32-epiphany3-dram0.125-spm0.5",
    "light_squeezenet-cell_be-dram0.125",
    "bert_tiny_f32-batch1-sequence64-mesh4x4-dram0.5",
)
"""Rows of the suite ``networks`` of up to a thousand tasks."""

REPLAYED = (
    "resnet8_int8-edge16",
    "tiny_lstm_f32-mesh4x4-dram0.25",
    "tiny_gru_f32-mesh4x4",
    "ds_cnn_f32-epiphany3-dram0.125-spm0.5",
)
"""Rows of which plans also run on numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a policy makes of a problem.

    Parameters
    ----------
    value
        Of its plan, in the problem's first quantity; ``None`` without one.
    violations
        That the checker finds.
    reason
        Why there is no plan.
    is_right
        Whether its replay gives the right numbers; ``None`` if it was not replayed.
    """

    value: int | None
    violations: int = 0
    reason: str = ""
    is_right: bool | None = None


def published_policies() -> tuple[str, ...]:
    """Return the solvers that are somebody else's idea, by name; not families of names."""
    names = solver_names()
    described = (name for name, one in list_solvers().items() if not one.source.startswith("own"))
    return tuple(name for name in described if name in names)


def outcome(
    name: str, problem: Problem, seconds: float, pace: Pace, source: ModelOnMachine | None = None
) -> Outcome:
    """Let a solver plan a problem, check the plan, and replay it if its network is given.

    ``pace`` tells what the seconds are: of the processor, or of work.
    """
    result = find_solver(name).solve(problem, SolveOptions(time_limit=seconds, pace=pace))
    if result.plan is None:
        return Outcome(value=None, reason=result.reason)
    return Outcome(
        value=result.plan.claim.of(problem.objective.first),
        violations=len(check(problem, result.plan)),
        is_right=None if source is None else _is_right(problem, result.plan, source),
    )


def _is_right(problem: Problem, plan: Plan, source: ModelOnMachine) -> bool:
    dims = dict(source.dims)
    return all(one.within for one in replay_plan(problem, plan, source.model, dims=dims))


def measure(data: Path) -> Iterator[Row]:
    """Measure row by row, and yield one row for each policy."""
    policies = published_policies()
    found: dict[str, list[Outcome]] = {name: [] for name in policies}
    best: list[int] = []
    for suite in ("tiny", "networks"):
        for row in load_suite(suite).rows:
            if suite == "networks" and row.name not in NETWORKS:
                continue
            problem, _ = make_problem(row.source, None, None)
            replayed = row.source if row.name in REPLAYED else None
            network = replayed if isinstance(replayed, ModelOnMachine) else None
            auto = outcome("auto", problem, SECONDS, Pace(process_time))
            for name in policies:
                one = outcome(name, problem, SECONDS, Pace(process_time), network)
                found[name].append(one)
                print(f"{row.name}: {name} {one}, auto {auto.value}", flush=True)
            values = [some[-1].value for some in found.values()]
            if any(value is not None and value < (auto.value or 0) for value in values):
                auto = outcome("auto", problem, LONGER, Pace(process_time))
                print(f"{row.name}: auto {auto} in {LONGER:g} s", flush=True)
            best.append(auto.value or 0)
    for name in policies:
        yield _row_of(name, found[name], best)


def _row_of(name: str, outcomes: list[Outcome], best: Iterable[int]) -> Row:
    ratios = [
        one.value / auto
        for one, auto in zip(outcomes, best, strict=True)
        if one.value is not None and not one.violations
    ]
    replays = [one.is_right for one in outcomes if one.is_right is not None]
    parts = [f"{len(ratios)} of {len(outcomes)} accepted"]
    if ratios:
        parts.append(f"{exp(mean(map(log, ratios))):.2f} × `auto`, least {min(ratios):.3f} ×")
    if replays:
        parts.append(f"{sum(replays)} of {len(replays)} replays right")
    refused = {_without_numbers(one.reason): one.reason for one in outcomes if one.value is None}
    return Row(
        quantity=f"`{name}`",
        published="none",
        ours=", ".join(parts),
        reason="; ".join(refused.values()),
    )


def _without_numbers(reason: str) -> str:
    """Return what reasons of one kind have in common: their last words."""
    return " ".join(word for word in reason.split()[-6:] if not any(map(str.isdigit, word)))


SOURCE = Source(
    title="All policies on the same networks",
    citation="Policies as [their page](policies.md) describes them; no publication has this table.",
    setting=(
        f"The suite `tiny`, and {len(NETWORKS)} rows of `networks` of up to a thousand tasks; "
        f"{SECONDS:g} s of the processor for each policy and for `auto` "
        f"({LONGER:g} s where a policy is better by then), one worker. "
        "Ratios are those of first objectives, geometric means. The checker accepts plans; "
        "those of "
        f"{len(REPLAYED)} rows run on numbers, too (`spmilp replay`). Refusals have their reason."
    ),
    rows=measure,
)
