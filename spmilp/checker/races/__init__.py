"""Do command lists keep a plan's order, whatever the delays? Independent of how they were made.

    check        the one way to ask
    structure    the lists run the plan's tasks and transfers, each once
    execution    the lists run without times, with vector clocks
    conflicts    accesses of the same bytes are ordered as in the plan
The rules are those of ``docs/commands.md``.
"""
