"""The compiled depth-first search: one part of an instance, one capacity.

``rules``
    The prunings as switches, each with the proof that it loses no solution.
``arrays``
    The instance's tables, the changing state, the stack frames.
``fit``, ``place``, ``frames``, ``kernel``
    The compiled functions: fit tests, placing an item, a node of the search, its main loop.
``run``
    One run as an object that can be continued.
"""
