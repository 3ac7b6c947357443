"""A list scheduler: many rules for the order and the cores of tasks, one schedule from each.

orders       in which order tasks are placed
assignments  on which cores tasks run
portfolio    the rules by name and in turn, and the schedules made by them
solver       the solver ``list``: the best plan of the portfolio
restarts     the solver ``search``: the best order and cores changed at random, scheduled anew
"""
