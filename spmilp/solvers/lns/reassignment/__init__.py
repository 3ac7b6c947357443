"""Tasks that change cores, with the operands that lie in the scratchpads for them.

- ``steps``: which tasks change cores together, and where to; new times for it, and whether it pays.
- ``move``: what has to change in a schedule for that, written down in an ``edit``.
"""
