"""``python -m spmilp`` and the command ``spmilp``: signals first, then the command line."""

from spmilp.cli.interrupts import end_at_signals


def main() -> None:
    """Run the command line; a signal counts from here on, while modules are still being loaded."""
    end_at_signals()
    from spmilp.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
