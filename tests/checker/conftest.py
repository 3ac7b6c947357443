"""What tests of the checker share."""

from collections.abc import Iterator

import pytest

from tests.checker.second_opinion import second_opinion


@pytest.fixture(autouse=True)
def _second_opinion() -> Iterator[None]:
    """Small plans that a test lets the checker judge are judged by the second checker too."""
    with second_opinion():
        yield
