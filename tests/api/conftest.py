"""Fixtures that other tests have too."""

from tests.acceptance.conftest import run

__all__ = ["run"]
