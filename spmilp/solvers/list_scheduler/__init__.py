"""A list scheduler: many rules for the order and the cores of tasks, one schedule from each.

orders            in which order tasks are placed
fused_bands       an order that fuses operators whose results do not fit
assignments       on which cores tasks run
locality          the core that holds most of what a tile touches
rules             orders by name, and which rules are tried first
rule_mixture      for each operator the rule that served it best
portfolio         all rules in turn, scheduled by ``kernels.serial``
schedules         the portfolio's schedules, made once for all solvers of a problem
tiling_evaluator  values problems that differ in their tiles by a few of the rules
solver            the best plan of the portfolio
"""
