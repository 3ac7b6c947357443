"""The command ``spmilp``: one module per verb; each imports what it needs when it runs.

``main``
    The verbs, and the exit code of an error that is a defect; ``failures`` those of all others.
``solve``, ``compare``, ``bench``
    Plans: of one problem, of several solvers, of suites.
``check``, ``replay``, ``export``, ``bound``, ``inspect``, ``convert``, ``machines``
    Plans, problems, models and machines that are there already.
``pack``, ``pack_answer``
    Offsets for given lifetimes; how they are shown, and why there are none.
``arguments``, ``options``
    Options that several verbs have, and the readers of their values.
``output``, ``progress``, ``interrupts``
    Tables and JSON, the line of progress, Ctrl-C and SIGTERM.
"""
