"""Solvers side by side on the same problems.

``compare``
    :func:`spmilp.compare`: every solver on every problem, and the tables of that.
``run``
    One solve under a clock: its history, its plan's figures, the checker's verdict.
``table``, ``profiles``
    Runs as tidy tables; performance profiles.
``warm_up``
    Libraries and compiled code, loaded before a clock starts.
"""
