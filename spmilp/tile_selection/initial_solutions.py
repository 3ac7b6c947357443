"""Tilings to begin a search with: what estimates that lean differently would choose."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spmilp.errors import DoesNotFitError
from spmilp.frontend.graph import Network
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidate_space import Landscape
from spmilp.tile_selection.first_choice import FirstChoice, choice_among
from spmilp.tile_selection.parameters import USUAL, Leaning
from spmilp.tile_selection.trials import Lowered


class Starts:
    """Chooses tilings by one leaning after another, from candidates that are known.

    Parameters
    ----------
    first
        What the usual estimate chose.
    lowered
        Makes the problem of some tilings.
    """

    def __init__(
        self, network: Network, machine: Machine, first: FirstChoice, lowered: Lowered
    ) -> None:
        self.first = first
        self._network = network
        self._machine = machine
        self._lowered = lowered
        self._tried = {USUAL}

    def in_waves(self) -> Iterator[FirstChoice]:
        """Yield choices in which all groups compute in equally many waves."""
        if len(self.first.landscapes) > 1:
            for number, landscape in self.first.landscapes.items():
                choice = self._among({number: landscape})
                if choice is not None:
                    yield replace(choice, landscapes=self.first.landscapes)

    def leaning(self, leaning: Leaning) -> FirstChoice | None:
        """Return what another estimate chooses; ``None`` where that does not fit."""
        self._tried.add(leaning)
        landscapes = self.first.landscapes.items()
        return self._among({number: landscape.leaning(leaning) for number, landscape in landscapes})

    def has_tried(self, leaning: Leaning) -> bool:
        """Say whether it was asked for the choice of an estimate."""
        return leaning in self._tried

    def _among(self, landscapes: Mapping[int, Landscape]) -> FirstChoice | None:
        try:
            return choice_among(self._network, self._machine, landscapes, self._lowered)
        except DoesNotFitError:
            return None
