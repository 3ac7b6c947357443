"""How tile sizes are chosen."""

from enum import StrEnum


class Tiles(StrEnum):
    """By a first estimate, or by a search that evaluates tilings by their schedules."""

    FIRST = "first"
    SEARCH = "search"
