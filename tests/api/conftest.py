"""Fixtures that other tests have too."""

from cli.conftest import run

__all__ = ["run"]
