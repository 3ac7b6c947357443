"""Makes kernels run as Python: imported where ``SPMILP_UNCOMPILED`` is in the environment.

Modules of the package are taken from their sources, also where there is machine code of them.
"""

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

PACKAGE = Path(__file__).parent


def sources_in(folder: str) -> FileFinder:
    """Return what finds modules in a folder of the package, which are Python.

    An ``ImportError`` leaves any other folder to others.
    """
    if not Path(folder).is_relative_to(PACKAGE):
        raise ImportError(folder)
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


sys.path_hooks.insert(0, sources_in)
sys.path_importer_cache.clear()
