"""The value replay of command lists: whatever the delays, the numbers are the same."""

from collections.abc import Iterable, Mapping

import numpy as np

from spmilp.checker.values.delays import delayed_events
from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.memory import raw
from spmilp.checker.values.replay import replay
from spmilp.commands.commands import CommandLists
from spmilp.frontend.graph import Network
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


def replay_with_delays(
    problem: Problem,
    plan: Plan,
    network: Network,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    lists: CommandLists,
    seeds: Iterable[int],
) -> None:
    """Run a plan by its command lists once for each seed, with random delays.

    Parameters
    ----------
    inputs
        One array for each of the network's inputs, of its shape and type.
    expected
        The outputs, as the plan computes them by its cycles.

    Raises
    ------
    ReplayError
        If an output differs in any bit, if something is read that is not there, or if the lists
        come to a deadlock.
    """
    for seed in seeds:
        events = delayed_events(problem.machine, lists, seed)
        try:
            found = replay(problem, plan, network, inputs, events)
        except ReplayError as error:
            raise ReplayError(f"with random delays from seed {seed}: {error}") from error
        for name, values in expected.items():
            apart = int(np.count_nonzero(raw(found[name]) != raw(values)))
            if apart:
                raise ReplayError(
                    f"with random delays from seed {seed}, {apart} of {values.size} elements of "
                    f"output {name} are not those of the plan"
                )
