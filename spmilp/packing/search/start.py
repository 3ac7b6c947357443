"""The first state of a run."""

from spmilp.compiled import kernel
from spmilp.packing.search.arrays import Given, Ints, State


@kernel
def fill_state(
    given: Given, state: State, order: Ints, section_from: int, section_until: int
) -> None:
    """Compute what each section holds, the cuts and the chains of twins; nothing is placed yet."""
    for item in order:
        for k in range(given.run_start[item], given.run_start[item + 1]):
            for section in range(given.run_from[k], given.run_until[k]):
                state.remaining[section] += given.run_units[k]
        for cut in range(given.hull_from[item] + 1, given.hull_until[item]):
            state.spanning[cut] += 1
    for section in range(section_from, section_until):
        if given.member_start[section] < given.member_start[section + 1]:
            state.witness[section] = given.member[given.member_start[section]]
