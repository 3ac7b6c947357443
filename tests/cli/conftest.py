"""The command as a user runs it, inside the test's process."""

from tests.acceptance.conftest import run

__all__ = ["run"]
