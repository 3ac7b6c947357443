"""A plan as straight code in C: a function for each core and each DMA channel.

constants  operators, boxes and shapes of copies, each kept once
lists      the functions, command by command
files      the files of the format
"""
