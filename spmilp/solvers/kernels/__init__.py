"""What the list scheduler and the searches that build on it compute with, compiled by numba.

records         arrays and tables that compiled code works on
reference       named tuples of tables, passed by reference between compiled functions
problem_tables  a problem as tables
machine_tables  a machine as tables
timeline        what engines and links carry, cycle by cycle
address_space   which residency lies where in each memory, and from when on a byte is free
schedule_state  all of these with a partial schedule
serial          serial schedule generation: order and cores in, schedule and plan out
dram            addresses in DRAM
"""
