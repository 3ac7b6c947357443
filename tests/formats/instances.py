"""Problems of any shape for the tests of files."""

from dataclasses import replace

from hypothesis import strategies as st

from spmilp.problem.objective import OF_ONE_INFERENCE, Objective, Quantity
from spmilp.problem.problem import BufferKind, Problem, Tile
from tests.solvers.tiny_problems import tiny_problem

NAMES = st.text(max_size=8)
SMALL = st.integers(0, 9)
KINDS = st.sampled_from(BufferKind)


@st.composite
def tiles(draw: st.DrawFn) -> Tile | None:
    if draw(st.booleans()):
        return None
    interval = st.tuples(st.integers(-3, 9), SMALL)
    return Tile(
        of=draw(NAMES),
        box=tuple(draw(st.lists(interval, max_size=4))),
        axes=tuple(draw(st.lists(SMALL, max_size=4))),
        reduction=draw(st.none() | interval),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Tiny problems with any names, kinds, tiles, energies, sources and objectives."""
    problem = tiny_problem(draw(st.integers(0, 2**32)), most_tasks=4)
    energies = st.tuples(*[st.none() | st.integers(0, 2**60)] * len(problem.machine.kinds))
    period = draw(st.sampled_from([(), (Quantity.PERIOD,)]))
    return replace(
        problem,
        name=draw(NAMES),
        tensors=tuple(replace(one, name=draw(NAMES), kind=draw(KINDS)) for one in problem.tensors),
        buffers=tuple(
            replace(one, name=draw(NAMES), kind=draw(KINDS), tile=draw(tiles()))
            for one in problem.buffers
        ),
        tasks=tuple(
            replace(one, name=draw(NAMES), tile=draw(tiles()), energy=draw(st.just(()) | energies))
            for one in problem.tasks
        ),
        objective=Objective((*period, *draw(st.permutations(OF_ONE_INFERENCE)))),
        sources=tuple(draw(st.lists(st.tuples(NAMES, NAMES), max_size=2))),
    )
