"""What ``explain`` answers: text for people, and data; and kinds of things with their words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from textwrap import wrap
from typing import Self

from spmilp.problem.problem import Problem

WIDTH = 80
"""Columns of the text."""


class Worded(StrEnum):
    """A kind of something, and the ``words`` in which it is told."""

    words: str

    def __new__(cls, value: str, words: str = "") -> Self:
        """Make a member of its value and its words."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words
        return member


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation:
    """Why a plan is as slow as it is, or why there is none; it shows as its text.

    Parameters
    ----------
    text
        Lines of at most 80 columns, as far as names allow.
    data
        The same with names and numbers, as ``spmilp explain --json`` prints it.
    """

    text: str
    data: Mapping[str, object]

    def __repr__(self) -> str:
        return self.text


def section(heading: str, lines: Iterable[str]) -> str:
    """Return a heading with its lines below, indented."""
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def paragraph(text: str, first: str = "") -> list[str]:
    """Return text as lines that fit into a section, the others indented as the first begins."""
    return wrap(
        text,
        WIDTH - 2,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def list_of(names: Sequence[str], most: int = 3) -> str:
    """Return ``a, b and c``; of many the first ones and the number of the others."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def network_name(problem: Problem) -> str:
    """Return the problem's name without the machine's, which lowering appends."""
    return problem.name.removesuffix(f" on {problem.machine.name}")
