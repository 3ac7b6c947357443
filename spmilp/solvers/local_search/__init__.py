"""Local search over orders, cores, prefetched loads and weights, evaluated by the list scheduler.

What is searched is not a plan but what the list scheduler makes one from (a ``Candidate``), so that
every step is a complete valid schedule. Large problems allow few steps; so most of them change what
the incumbent's critical chain touches.

candidate            a point of the search space, and its schedule with its value
problem_index        the problem as arrays that moves ask
sequence             orders of tasks with the points at which loads are prefetched
evaluate             from candidate to schedule
initial_solutions    a hint, the list scheduler's portfolio, its best with prefetched loads
critical             the tasks that hold a schedule up
neighbourhood_state  the current schedule as moves see it
core_moves           moves to other cores
order_moves          moves to other orders
prefetch_moves       moves to other leads and weights
moves                all moves by name
run                  one run of the search
incumbent            what several runs share
solver               the solver ``search``
"""
