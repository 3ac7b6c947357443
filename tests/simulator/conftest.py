"""The command as a user runs it, and a small plan, inside the test's process."""

from tests.acceptance.conftest import run, tiny

__all__ = ["run", "tiny"]
