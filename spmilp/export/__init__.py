"""Exports of a plan for other programs.

    formats, request                           the formats; an export as users ask for it
    subject                                    a plan with its problem, origin and network
    names, errors                              names as safe text; errors
    tables                                     a plan as tables of integers
    c_files, c_tables, c_text, c_types, binary these tables as C99, and as one binary file
    actions, packed                            what runs, without times; as a string of bits
    player                                     a player in C99 that runs them
    code                                       a function in C99 for each core and channel
    command_lists, dma                         command lists; descriptors of DMA controllers
    allocation, allocation_csv, allocation_md  addresses and lifetimes as rows, as CSV, as Markdown
    minimalloc, linker, tflm                   addresses for MiniMalloc, GNU ld and TFLM
    netron, perfetto                           the annotated ONNX model; a timeline
``docs/exports.md`` describes every file.
"""
