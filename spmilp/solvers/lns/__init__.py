"""Large-neighbourhood search: shortens a plan as a partial-order schedule.

- ``solver``: the solver with its ``options``: the search, from initial solutions on.
- ``steps``: which step comes next.
- ``advance``: some loads are advanced.
- ``reassignment``: tasks change cores.
"""
