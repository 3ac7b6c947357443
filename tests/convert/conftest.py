"""Running the command, as the tests of the command line do."""

from cli.conftest import run

__all__ = ["run"]
