"""Exports of a plan for other programs.

- ``formats``: registry of the formats, and files of one call; ``request``: an export as users ask
  for it; ``subject``: a plan with its origin; ``names``: names as safe text; ``errors``
- ``c_files`` (tables as C99, with ``c_text``), ``binary``, ``player``: tables for firmware, made by
  ``tables``
- ``command_lists``, ``dma`` (descriptors of DMA controllers)
- ``allocation`` with ``allocation_csv`` and ``allocation_md``, ``minimalloc``, ``linker``, ``tflm``
- ``netron`` (annotated ONNX), ``perfetto`` (timeline)
"""
