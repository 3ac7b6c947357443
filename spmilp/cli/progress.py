"""A line of progress on stderr, shown only on a terminal."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from spmilp.cli.output import console, visible
from spmilp.quantities import percent, relative_gap

if TYPE_CHECKING:
    from spmilp.solvers.base import Progress


class ProgressLine:
    """Says what the command does; silent unless stderr is a terminal."""

    def __init__(self) -> None:
        self._text = ""
        self._end = math.inf
        self._status = console(stderr=True).status(self) if sys.stderr.isatty() else None

    def __rich__(self) -> RenderableType:
        """Return the line as it is now; it is drawn several times a second."""
        left = self._end - time.perf_counter()
        if math.isinf(left):
            return Text(self._text)
        return Text(f"{self._text}, {max(0.0, left):.0f} s left")

    def say(self, text: str) -> None:
        """Replace the line."""
        self._text = visible(text)

    def ends_at(self, instant: float) -> None:
        """Show the seconds left until an instant of ``time.perf_counter``."""
        self._end = instant

    def print_above(self, text: str) -> None:
        """Print a line that stays, above the one that is replaced."""
        to = console(stderr=True) if self._status is None else self._status.console
        to.print(Text(visible(text)), soft_wrap=True)

    def starts(self, instance: str, solver: str) -> None:
        """Say which solver begins on which instance."""
        self.say(f"{instance}: {solver}")

    def better_tiles(self, value: int, tasks: int) -> None:
        """Show what the search for tile sizes has found."""
        self.say(f"choosing tiles: best {value:,} with {tasks:,} tasks")

    def improved(self, progress: "Progress") -> None:
        """Show a solver's incumbent, bound and gap."""
        incumbent = progress.incumbent
        if incumbent is None:
            self.say(f"solving: no plan yet, bound {progress.bound:,} ({progress.source})")
            return
        gap = percent(relative_gap(incumbent, progress.bound))
        self.say(
            f"solving: best {incumbent:,}, bound {progress.bound:,}, gap {gap} ({progress.source})"
        )


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Show a line of progress for as long as the block runs."""
    line = ProgressLine()
    if line._status is None:
        yield line
        return
    with line._status:
        yield line
