"""The replay of a plan against the model that its problem was made from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from spmilp.checker.values.compare import Difference, compare, reference_outputs
from spmilp.checker.values.inputs import random_inputs, read_inputs
from spmilp.checker.values.replay import replay, replay_with_delays
from spmilp.commands.build import build_commands
from spmilp.frontend.load import load_network_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


def replay_plan(
    problem: Problem,
    plan: Plan,
    model: str | Path,
    *,
    dims: Mapping[str, int] | None = None,
    values: Path | None = None,
    seed: int = 0,
    delay_seeds: Sequence[int] = (),
) -> tuple[Difference, ...]:
    """Run a plan on real numbers, and compare each output with onnxruntime's.

    For each of ``delay_seeds`` it is run again by its command lists, with random delays on every
    task and transfer; the outputs must stay the same, bit for bit.

    Parameters
    ----------
    model
        The one that the problem was made from, with the same ``dims``.
    values
        An ``.npz`` file with the network's inputs; without it they are random.

    Raises
    ------
    ReplayError
        If the plan reads bytes that are not there, or changes bytes while they are read; or if
        delays change an output.
    SpmilpError
        If a file cannot be used, the model is another one, or onnxruntime is missing.
    """
    file, network = load_network_of(problem, model, dims or {})
    inputs = read_inputs(values, network) if values else random_inputs(network, seed)
    reference = reference_outputs(file, inputs)
    outputs = replay(problem, plan, network, inputs)
    if delay_seeds:
        lists = build_commands(problem, plan)
        replay_with_delays(problem, plan, network, inputs, outputs, lists, delay_seeds)
    return compare(outputs, reference, network)
