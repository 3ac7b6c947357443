"""What a search has found and when: each better incumbent and each better bound."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from spmilp import quantities
from spmilp.errors import FileError
from spmilp.files import read_bytes

HEADING = f"{'time':>8}  {'source':<26}{'incumbent':>17}{'bound':>17}{'gap':>9}"
"""Above the rows of a log; 79 columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A better incumbent, a better bound, or both, so many seconds after the solve began.

    They are the best that are known now; ``None`` where none is.
    """

    seconds: float
    source: str
    incumbent: int | None
    bound: int | None

    @property
    def gap(self) -> float | None:
        """``(incumbent - bound) / incumbent``, where both are known."""
        if self.incumbent is None or self.bound is None:
            return None
        return quantities.relative_gap(self.incumbent, self.bound)

    def as_row(self) -> str:
        """Return one line of text below :data:`HEADING`."""
        source = self.source if len(self.source) <= 26 else f"{self.source[:25]}…"
        incumbent = "-" if self.incumbent is None else f"{self.incumbent:,}"
        bound = "-" if self.bound is None else f"{self.bound:,}"
        gap = "-" if self.gap is None else quantities.percent(self.gap)
        return f"{self.seconds:>7.1f}s  {source:<26}{incumbent:>17}{bound:>17}{gap:>9}"

    def as_fields(self) -> dict[str, object]:
        """Return it as the fields of a JSON object."""
        return {"event": "progress", **asdict(self), "gap": self.gap}


class SearchLog:
    """Keeps what is better than all before it; ``clock`` has the seconds since the solve began."""

    def __init__(
        self, clock: Callable[[], float], on_entry: Callable[[LogEntry], None] = lambda entry: None
    ) -> None:
        self._clock = clock
        self._on_entry = on_entry
        self._entries: list[LogEntry] = []

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        """All of them, the first one first."""
        return tuple(self._entries)

    def note(self, source: str, incumbent: int | None, bound: int | None) -> None:
        """Add an entry if the incumbent is less, or the bound greater, than all before."""
        last = self._entries[-1] if self._entries else None
        best = least, most = (None, None) if last is None else (last.incumbent, last.bound)
        if incumbent is not None and (least is None or incumbent < least):
            least = incumbent
        if bound is not None and bound > (most or 0):
            most = bound
        if (least, most) == best:
            return
        seconds = round(self._clock(), 3)
        entry = LogEntry(seconds=seconds, source=source, incumbent=least, bound=most)
        self._entries.append(entry)
        self._on_entry(entry)


def read_log(path: Path) -> tuple[LogEntry, ...]:
    """Read a log in JSON lines; lines of other events are passed over.

    Raises a ``FileError`` if the file cannot be read, or a line of it is no entry.
    """
    entries = []
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        try:
            fields = msgspec.json.decode(line, type=dict[str, Any])
            if fields.get("event") == "progress":
                entries.append(msgspec.convert(fields, LogEntry))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FileError(
                f"{path}: line {number} is no entry of a search log: expected an object with "
                f"seconds, source, incumbent and bound ({error})"
            ) from error
    return tuple(entries)
