"""What the checker finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A plan breaks a rule.

    ``rule`` is its name; ``docs/format.md`` describes each. ``objects`` are the tasks, residencies,
    transfers and hardware concerned, most important first; ``message`` is one line that names them
    and both numbers.
    """

    rule: str
    objects: tuple[str, ...]
    message: str
