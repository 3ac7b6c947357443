"""Large-neighbourhood search: shortens a plan as a partial-order schedule.

- ``solver``: the solver with its ``options``: the search, from initial solutions on.
- ``steps``: which step comes next, on one thread or several.
- ``advance``: some loads are advanced.
- ``window_search``: CP-SAT decides the order and times of all that starts in a ``window``
  (``window_model``).
- ``reassignment``: tasks change cores.
- ``joint``: CP-SAT decides in a window what is read from where, too, and the cores of some tasks.
- ``stretch``: parts of a schedule between borders, which are shortened apart from each other;
  ``rounds``: a plan that is cut into them and joined again, for processes side by side.
"""
