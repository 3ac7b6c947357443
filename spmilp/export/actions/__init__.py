"""What a plan does, without times and names: copies, and calls of kernels.

    places     where bytes lie in a program
    operators  what all tiles of an operator have in common
    actions    the copies of each transfer, and the calls of each task
    pools      words, texts, ports and constants on chip: what stays a table in a program

The release profile packs them into bits (:mod:`spmilp.export.packed`), the code in straight C
calls them one after the other (:mod:`spmilp.export.code`).
"""
