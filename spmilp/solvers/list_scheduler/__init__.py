"""A list scheduler: many rules for the order and the cores of tasks, one schedule from each.

orders       in which order tasks are placed
blocks       reductions that add up what others compute, block by block
assignments  on which cores tasks run
rules        orders by name, which rules are tried first, and mixtures of several
portfolio    all rules in turn, scheduled by ``kernels.serial``
schedules    the portfolio's schedules, made once for all solvers; quick values of other tilings
solver       the best plan of the portfolio
restarts     the solver ``search``: the best order and cores changed at random, scheduled anew
"""
