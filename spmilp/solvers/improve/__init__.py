"""Large-neighbourhood search: shortens a plan as a partial-order schedule.

- ``solver``: the search, from initial solutions on.
- ``steps``: steps in which a task changes its core; ``reassignment``: one such change.
"""
