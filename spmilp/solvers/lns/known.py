"""Windows that have been solved: an equal one gets the same answer at once."""

from typing import NamedTuple

from spmilp.units import Cycles


class Answer(NamedTuple):
    """What a window saves, and how.

    Attributes
    ----------
    starts
        From the window's start, of the activities inside, in the order of their old times; empty
        where nothing is saved.
    """

    saved: Cycles
    starts: tuple[Cycles, ...]


class Known:
    """Answers by the fingerprints of windows, the same for windows that differ in names alone."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Answer] = {}

    def answer(self, fingerprint: bytes) -> Answer | None:
        """Return the answer to an equal window; ``None`` if there was none."""
        return self._answers.get(fingerprint)

    def remember(self, fingerprint: bytes, answer: Answer) -> None:
        """Keep an answer."""
        self._answers[fingerprint] = answer
