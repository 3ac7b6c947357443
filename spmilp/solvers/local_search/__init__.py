"""Local search over orders, cores, prefetched loads and weights, evaluated by the list scheduler.

What is searched is not a plan but what the list scheduler makes one from (a ``Candidate``), so that
every step is a complete valid schedule. Large problems allow few steps; so most of them change what
the incumbent's critical chain touches.

candidate            a point of the search space, and the way to its schedule with its value
problem_index        the problem as arrays that moves ask
neighbourhood_state  the current schedule as moves see it, with the tasks that hold it up
moves                moves to other cores, orders, leads and weights, by name
run                  one run of the search, and what several share
solver               the solver ``search``, and its initial solutions
"""
