"""Exports of a plan for other programs (``docs/exports.md`` describes every file).

formats                     the formats by name; an export as users ask for it
subject, names, errors      a plan with its problem, origin and network; names as safe text
actions, places             what runs: copies and calls of kernels, and where their bytes lie
packed, bits                as a string of bits; fields, prefix codes and templates of bits
straight                    as a function in C99 for each core and channel
player                      what runs either: the program, its makefile, and limits of kernels
c, templates                sources in C99: those of all plans, by who needs them; those with marks
c_text, codes               templates filled in; numbers that stand for names
command_lists, dma          command lists; descriptors of DMA controllers
allocation, linker          addresses as CSV, for MiniMalloc and for GNU ld
netron, perfetto            the annotated ONNX model; a timeline
"""
