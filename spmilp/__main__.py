"""``python -m spmilp`` and the command ``spmilp``: signals first, then the command line."""

from time import perf_counter

from spmilp.cli.interrupts import end_at_signals


def main() -> None:
    """Run the command line; a signal counts from here on, while modules are still being loaded."""
    started = perf_counter()
    end_at_signals()
    from spmilp.cli.main import main as command_line

    command_line(started)


if __name__ == "__main__":
    main()
