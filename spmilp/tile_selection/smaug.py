"""SMAUG's tiles: operator by operator, the largest that its scratchpads hold, cut along few axes.

Xi et al., "SMAUG: End-to-End Full-Stack Simulation Infrastructure for Deep Learning Workloads",
ACM TACO 17(4), 2020, doi 10.1145/3424669. It has three scratchpads of equal size, for inputs,
weights and results, and cuts along the first set of axes, in a fixed order of preference, along
which tiles fit them.

What it leaves open here, and what is done: a third of a core's share of its memory stands for each
scratchpad. Tiles are halved along these axes until they fit; its program looks at every size. Only
where none fit the reduction is cut as well, and where thirds are too small for any tile, all
operands have to fit the share together.
"""

from collections.abc import Callable
from itertools import product

from spmilp.errors import DoesNotFitError
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import Problem
from spmilp.tile_selection.coarse import tilings_that_fit
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.group_model import GroupModel, TileShrinker
from spmilp.units import Bytes

SCRATCHPADS = 3
"""Of SMAUG's accelerator: inputs, weights and outputs have one each; here each gets a third."""

PREFERENCE = ("", "N", "NC", "NH", "NW", "NHW", "NCH", "NCW")
"""Sets of axes in the order in which they are tried: batch, channels, rows, columns."""


def smaug_problem(subject: NetworkOnMachine) -> Problem:
    """Return the problem of SMAUG's tiles; groups of which tasks do not fit have smaller ones.

    Raises
    ------
    DoesNotFitError
        If the smallest tile of a group fits no core's share of a memory, or no tiles are found
        that do.
    """
    network, machine = subject.network, subject.machine
    share = machine_rates(machine).least_share
    models = [GroupModel(network, group, machine) for group in network.groups]
    tilings = {model.group.index: _tiling(model, share) for model in models}
    return tilings_that_fit(network, machine, [tilings], subject.lower, go_on=subject.go_on)[1]


def _tiling(model: GroupModel, share: Bytes) -> Tiling:
    """Return the tiling of a group along the first axes along which tiles fit."""
    rank = len(model.shape)
    # In pictures channels are behind the batch; in sequences they are last, and rows before them.
    place = {"N": 0, "C": 1 if rank == 4 else rank - 1, "H": rank - 2, "W": rank - 1}

    def thirds(tiling: Tiling) -> Bytes:
        footprint = model.footprint(tiling)
        return max(footprint.bytes, SCRATCHPADS * max(size for _, size in footprint.parts))

    measures: tuple[Callable[[Tiling], Bytes] | None, ...] = (thirds, None)
    for bytes_of, splits_reduction, axes in product(measures, (False, True), PREFERENCE):
        if rank == 4 or "W" not in axes:
            chosen = [place[axis] for axis in axes if 0 <= place[axis] < rank]
            shrinker = TileShrinker(model, splits_reduction, bytes_of, axes=chosen)
            found = shrinker.until_it_fits(model.uncut, share)
            if found is not None:
                return found
    box, smallest = model.smallest()
    needed = model.footprint(smallest).bytes
    raise DoesNotFitError(
        f"group {model.group.name}: its smallest tile {box} needs {needed} B > {share} B, "
        "a core's share of its memory; use a machine with larger scratchpads"
    )
