"""Solvers side by side on the same problems.

    compare  every solver on every problem, and the tables of the results
    run      one solve under a clock: history, figures of the plan, the checker's verdict
    table    runs as tidy tables; performance profiles
    warm_up  libraries and compiled code, loaded before a clock starts
The public function is :func:`spmilp.compare`.
"""
