"""Other processes evaluate tilings ahead: the search stays the same, and outlives them."""

import os
import signal
from collections.abc import Iterable, Sequence
from concurrent.futures import wait as wait_for

import pytest

from spmilp.lowering.tiling import Tilings
from spmilp.tile_selection import ahead, refine
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.settings import TileOptions, Tiles
from tests.lowering.builders import star_machine
from tests.tile_selection.test_refine import residuals

pytestmark = pytest.mark.full

SUBJECT = NetworkOnMachine(network=residuals(), machine=star_machine(4, 1 << 14))


@pytest.fixture(scope="module")
def alone() -> list[object]:
    with pytest.MonkeyPatch.context() as patched:
        return searched(1, patched)[0]


def searched(workers: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[object], list[str]]:
    """Return what was tried, with what it was worth, and the warnings."""
    tried: list[object] = []
    warnings: list[str] = []
    known = refine.Trials.is_better

    def is_better(self: refine.Trials, some: Tilings, after: Iterable[Tilings] = ()) -> bool:
        found = known(self, some, after)
        tried.append((some, self.value_of(some), found))
        return found

    begin = ahead.Ahead._begin

    def begin_and_wait(self: ahead.Ahead, tilings: Sequence[Tilings]) -> None:
        """Let helpers be ready in time, however short the search is and busy the computer."""
        begin(self, tilings)
        wait_for(self._asked.values())

    with monkeypatch.context() as patched:
        patched.setattr(refine.Trials, "is_better", is_better)
        patched.setattr(ahead.Ahead, "_begin", begin_and_wait)
        how = TileOptions(
            how=Tiles.SEARCH, tasks=12_000, workers=workers, on_warning=warnings.append
        )
        tried.append(choose_tiles(SUBJECT, how).value)
    return tried, warnings


def die(question: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_with_more_workers_the_same_tilings_are_tried_in_the_same_order(
    alone: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(alone) > 20
    evaluated_here = 0
    known = ahead.outcome

    def outcome(*given: object) -> object:
        nonlocal evaluated_here
        evaluated_here += 1
        return known(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(ahead, "outcome", outcome)
    assert searched(3, monkeypatch) == (alone, [])
    assert evaluated_here < len(alone)


def test_a_search_whose_helpers_are_killed_goes_on_alone_and_says_so_once(
    alone: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "evaluate", die)
    tried, warnings = searched(3, monkeypatch)
    assert tried == alone
    (warning,) = warnings
    assert "ended by SIGKILL" in warning
