"""Which code made a figure."""

from functools import cache
from hashlib import sha256
from pathlib import Path

import spmilp
from spmilp.code_cache import hash_of_sources

ROOTS = ("bench/make.py", "solvers/registry.py", "checker/check.py", "tile_selection/search.py")
"""From these, imports lead to all that has a say in a problem, a plan and its verdict."""


@cache
def version() -> str:
    """Return the version, and a hash of the sources, the compiler and the processor.

    Figures with the same version can be compared with each other; a figure of another one is
    measured again when a benchmark is resumed.
    """
    folder = Path(spmilp.__file__).parent
    hashes = [hash_of_sources(folder / root) for root in ROOTS]
    return f"{spmilp.__version__}+{sha256(''.join(hashes).encode()).hexdigest()[:12]}"
