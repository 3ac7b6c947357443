"""Step functions of engines and links against a plain list of cycles."""

from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.solvers.schedule.kernels import timeline as compiled

# What C calls is tried as Python.
LOADER = SourceFileLoader("timeline", str(Path(compiled.__file__).with_name("timeline.py")))
kernels = module_from_spec(ModuleSpec("timeline", LOADER))
LOADER.exec_module(kernels)
earliest_gap, occupy, new_timeline = kernels.earliest_gap, kernels.occupy, kernels.new_timeline

HORIZON = 200

requests = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 12), st.integers(1, 3)), max_size=12
)


def first_gap(load: list[int], ready: int, cycles: int, spare: int) -> int:
    return next(
        start
        for start in range(ready, HORIZON)
        if all(level <= spare for level in load[start : start + cycles])
    )


@settings(max_examples=200, derandomize=True, deadline=None)
@given(requests)
def test_every_gap_is_the_first_one(wanted: list[tuple[int, int, int]]) -> None:
    capacity = 4
    timeline = new_timeline(2, pool=4)
    load = [0] * (2 * HORIZON)
    for ready, cycles, demand in wanted:
        start = earliest_gap(timeline, 1, ready, cycles, capacity - demand)
        assert start == first_gap(load, ready, cycles, capacity - demand)
        while not occupy(timeline, 1, start, start + cycles, demand):
            timeline = _larger(timeline)
        for cycle in range(start, start + cycles):
            load[cycle] += demand


def _larger(timeline):
    """Return the same step functions in a pool of twice the size."""
    grown = new_timeline(len(timeline.resources), pool=2 * len(timeline.steps))
    grown.steps[: len(timeline.steps)] = timeline.steps
    grown.resources[:] = timeline.resources
    grown.used[:] = timeline.used
    return grown
