"""How tile sizes are chosen."""

from enum import StrEnum


class Tiles(StrEnum):
    """By a first estimate, by a search that evaluates tilings by schedules, or as SMAUG does."""

    FIRST = "first"
    SEARCH = "search"
    SMAUG = "smaug"
