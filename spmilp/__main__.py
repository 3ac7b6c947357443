"""``python -m spmilp``: the command line."""

from spmilp.cli.main import main

if __name__ == "__main__":
    main()
