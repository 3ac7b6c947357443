"""The command line that the programs of this folder have in common."""

import argparse
from collections.abc import Iterable


def parser_for(text: str | None, kinds: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser with a seed and a choice of kinds; ``text`` begins with what it is for."""
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(kinds), choices=list(kinds))
    return parser
