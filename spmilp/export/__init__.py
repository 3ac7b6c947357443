"""Exports of a plan for other programs (``docs/exports.md`` describes every file).

formats                     the formats by name; an export as users ask for it
subject, names, errors      a plan with its problem, origin and network; names as safe text
actions                     what runs: copies and calls of kernels, from which C is written
packed, bits                as a string of bits; fields, prefix codes and templates of bits
straight                    as a function in C99 for each core and channel
player, c, templates        what runs either: choice of sources, makefile; sources in C99
c_text, codes               pieces of C; numbers that stand for names
command_lists, dma          command lists; descriptors of DMA controllers
allocation, linker, tflm    addresses as CSV, as Markdown, for MiniMalloc, GNU ld and TFLM
netron, perfetto            the annotated ONNX model; a timeline
"""
