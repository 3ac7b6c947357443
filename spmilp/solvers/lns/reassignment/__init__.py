"""Tasks that change cores, with the operands that lie in the scratchpads for them.

- ``components``: which tasks change cores together, and where to.
- ``move``: what has to change in a schedule for that, written down in an ``edit``.
- ``steps``: new times for it, and whether it pays.
"""
