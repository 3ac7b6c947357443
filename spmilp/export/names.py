"""Names from a model, untrusted text, as identifiers, comments and fields of CSV files."""

import re

LONGEST_IDENTIFIER = 40
LONGEST_COMMENT = 100

_SPECIAL = re.compile(r"[^A-Za-z0-9 _.,:;+=()\[\]{}<>/@#$%&|^~!'-]")
"""Characters that may end a comment, continue a line or make a trigraph, and all beyond ASCII."""


def numbered(prefix: str, number: int, name: str) -> str:
    """Return an identifier of C that no other number with this prefix has.

    What of a name can be a part of an identifier follows the number.
    """
    kept = re.sub(r"[^A-Za-z0-9]+", "_", name[: 8 * LONGEST_IDENTIFIER]).strip("_")
    kept = kept[:LONGEST_IDENTIFIER].rstrip("_")
    return f"{prefix}{number}_{kept}" if kept else f"{prefix}{number}"


def comment(name: str) -> str:
    """Return a name as it may stand in a comment: short, one line, ASCII, without ``*`` and ``?``.

    Other characters are written ``<U+002A>``.
    """
    shown = _SPECIAL.sub(lambda found: f"<U+{ord(found[0]):04X}>", name[:LONGEST_COMMENT])
    if len(name) <= LONGEST_COMMENT:
        return shown
    return f"{shown}... ({len(name)} characters)"


def field(name: str) -> str:
    """Return a name as one field of a CSV file: ASCII on one line, and no formula of a spreadsheet.

    Other characters are escaped as in Python (``\\n``, ``\\xe9``). A name that a spreadsheet would
    take for a formula gets an apostrophe in front.
    """
    return no_formula(name.encode("unicode_escape").decode("ascii"))


def no_formula(text: str) -> str:
    """Return text that no spreadsheet takes for a formula: with an apostrophe where it would."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
