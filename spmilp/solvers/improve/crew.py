"""Processes that try moves beside a search: it takes the first that pays, as it would alone."""

import pickle
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from spmilp.processes import Child, ChildError


class Crew:
    """Children that each know the same two things, and answer questions about them together.

    One that ends is left out; then ``on_warning`` is called.

    Parameters
    ----------
    number
        Of children; they start at once.
    """

    def __init__(self, number: int, on_warning: Callable[[str], None]) -> None:
        self._children = [Child() for _ in range(number)]
        self._on_warning = on_warning
        self._known: dict[Child, list[object]] = {child: [None, None] for child in self._children}

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._known:
            child.end()

    @property
    def size(self) -> int:
        """The processes that work together, this one included."""
        return 1 + len(self._children)

    def first(
        self,
        function: Callable[..., Any],
        things: Sequence[object],
        questions: Sequence[object],
    ) -> tuple[int, Any] | None:
        """Return the first answer to questions that is one, and its place; all at the same time.

        Parameters
        ----------
        function
            Of a module; called with the two things and a question. It has no effect.
        things
            They never change, and are sent to a child when it does not know them.
        questions
            No more than there are processes; the first is answered here.
        """
        asked = list(zip(self._children, questions[1:], strict=False))
        for child, question in asked:
            known = self._known[child]
            news = [
                None if old is new else pickle.dumps(new)
                for old, new in zip(known, things, strict=True)
            ]
            known[:] = things
            child.begin(_answer, function, news, question)
        answers = [function(*things, questions[0])]
        answers += [self._answer_of(child) for child, _ in asked]
        found = ((place, answer) for place, answer in enumerate(answers) if answer is not None)
        return next(found, None)

    def _answer_of(self, child: Child) -> Any:
        try:
            return child.answer()
        except ChildError as error:
            self._children.remove(child)
            self._on_warning(f"a worker ended, and the search went on without it: {error}")
            return None


@cache
def _things() -> list[Any]:
    return [None, None]


def _answer(function: Callable[..., Any], news: Sequence[bytes | None], question: object) -> Any:
    things = _things()
    things[:] = [
        old if new is None else pickle.loads(new) for old, new in zip(things, news, strict=True)
    ]
    return function(*things, question)
