"""Large-neighbourhood search: shortens a plan as a partial-order schedule.

- ``solver``: the solver with its ``options``: the search, from initial solutions on.
- ``steps``: which step comes next; some loads are advanced.
- ``components``: steps in which tasks change cores; ``reassignment``: one such change.
"""
