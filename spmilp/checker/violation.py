"""What the checker finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A plan breaks a rule.

    Parameters
    ----------
    rule
        Name of the rule; ``docs/format.md`` describes each.
    objects
        The tasks, residencies, transfers and hardware concerned, most important first.
    message
        One line that names the objects and both numbers.
    """

    rule: str
    objects: tuple[str, ...]
    message: str
