"""Independent checks of what solvers and exports make.

    check, rules, violation    is a plan valid? From raw integers, without solver or front end
    races                      do command lists keep its order, whatever the delays?
    values                     does it compute what the network computes?
No solver is believed before ``check`` has seen its plan.
"""
