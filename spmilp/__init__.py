"""Map neural networks onto many-core machines with scratchpad memories.

The line from a model to a checked plan is written out in :mod:`spmilp.pipeline`.
"""

from spmilp.version import __version__ as __version__
