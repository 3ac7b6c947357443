"""What the list scheduler and the searches that build on it compute with, compiled by Cython.

records         arrays and tables that compiled code works on
tables          a problem and a machine as tables
plan_columns    the decisions of a plan in columns
timeline        what engines and links carry, cycle by cycle
schedule_state  all of these with a partial schedule
memories        what memories hold: residencies, free bytes, their uses
transfers       one transfer, to one memory or to several; what an engine can copy
eviction        which bytes to clear, and how
generate        the scheduler itself, task by task: order and cores in, schedule out
run             one run of it on tables that grow; why it stopped
addresses       offsets in memories by packing, and in DRAM
extract         schedule in, plan and quantities out
"""
