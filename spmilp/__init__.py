"""Map neural networks onto many-core machines with scratchpad memories.

The line from a model to a checked plan is written out in :mod:`spmilp.pipeline`.
"""

__version__ = "0.1.0"
